#ifndef KILN_OP_H_
#define KILN_OP_H_

#include <kiln/any_call.h>
#include <kiln/call_view.h>
#include <kiln/export.h>
#include <kiln/kernel.h>
#include <kiln/memory.h>
#include <kiln/options.h>
#include <kiln/registry.h>
#include <kiln/selection.h>
#include <kiln/signature.h>
#include <kiln/status.h>
#include <kiln/tensor.h>
#include <kiln/tune.h>

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::inline v1 {

// One kernel call that a call of an op will make.
struct KernelCall {
  std::string interface;  // by the name the op gives it
  AnyCall call;
};

// Record of a completed call.
struct CallRecord {
  CallArgs args;
  Device device;
  std::vector<std::string>
      keys;  // the chosen implementation of each kernel call; for a target, its name
};

// What was built for one identity.
struct BuiltEntry {
  std::string key;
  BuildIdentity identity;
  DeviceFacts facts;
  Config config;
};

class OpCore;
// What an op class is constructed from. Made by `prepare_op`.
class KILN_EXPORT OpInit {
 public:
  explicit OpInit(std::unique_ptr<OpCore> core);
  OpInit(OpInit&&) noexcept;
  OpInit& operator=(OpInit&&) noexcept;
  ~OpInit();

 private:
  friend class Op;
  std::unique_ptr<OpCore> core_;
};

// What a user calls. Ops are made by `create` of their class and hold their kernels; calls from
// many threads are safe.
//
// A call: the signature's checks, then the plan (which kernel calls, with which call specs), then
// for each the one implementation that serves it, built if this is the first time. All of that is
// remembered by the tensors' dtypes, shapes, strides and alignment, so that a call with known ones
// looks up one row and launches.
class KILN_EXPORT Op {
 public:
  // The op's work must have ended, and what was captured of it is not to run again: its scratch
  // memory is freed, and its kernels may be unloaded.
  virtual ~Op();
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  const Signature& signature() const;
  const ParamValues& params() const;
  Runtime& runtime() const;

  // The kernel calls that a call with these arguments makes, after the signature's checks. Touches
  // no device.
  absl::StatusOr<std::vector<KernelCall>> plan(const CallArgs& args) const;

  // The key of the implementation that serves `call`; device facts that the call states are used in
  // place of the device's, so the answer need not depend on this machine. Builds nothing. Errors:
  // Unimplemented ("no implementation serves this call", "dispatch is ambiguous"), with
  // ErrorKind::op_not_available when none runs on the device type; InvalidArgument ("takes a … call
  // spec", "cannot key a dispatch cache").
  absl::StatusOr<std::string> key_for(std::string_view interface, CallRef call) const;
  // The same with the verdict of every implementation, for facts given in whole.
  absl::StatusOr<Selection> select(std::string_view interface, CallRef call,
                                   const DeviceFacts& facts) const;
  // The identity of the entry that `key` would build for `call`.
  absl::StatusOr<EntryPlan> entry_plan(std::string_view interface, std::string_view key,
                                       CallRef call) const;

  // The entry that serves `call`, built, compiled and loaded if this is the first time, as its
  // interface. It lives as long as the op. The call must not state device facts.
  absl::StatusOr<const void*> kernel_for(std::string_view interface, CallRef call);

  // Builds, compiles and loads behind the caller's back what a call with these arguments needs on
  // `device`. The future's status is the first error, or ok when such a call finds all of it. Under
  // `forbid` nothing is compiled. When the op is destroyed before, what has not begun is Cancelled.
  std::shared_future<absl::Status> prefetch(const CallArgs& args, const Device& device);

  // Runs the op on tensors in signature order; nullptr: an optional input that is not passed.
  // Outputs are the caller's buffers. Work is enqueued on `stream`; the call's device is the
  // stream's. Empty written tensors: checks run, nothing else does.
  absl::Status call(const Stream& stream, std::span<const Tensor* const> inputs,
                    std::span<const Tensor* const> outputs,
                    const ParamValues& execution_params = {});
  // The same, with outputs allocated on the stream's device. They are freed in order of `stream`.
  absl::StatusOr<std::vector<OwnedTensor>> call_allocating(
      const Stream& stream, std::span<const Tensor* const> inputs,
      const ParamValues& execution_params = {});

  // Turns on tuning mode for this instance and its sub-ops; there is no way back. Kernels that have
  // been called are swept now, in the largest call that each has served and on that call's device;
  // others when a call first reaches them. A sweep has tensors of its own, and calls of other
  // threads go on with the configuration in force until the winner replaces it. A stored winner
  // makes a sweep unnecessary (unless `force`). A kernel without `autotune_configs` does not tune.
  // A served target's kernels, those there are and those to come, get request_tune(); where one
  // does not offer it, the instance warns once. Trouble leaves the configuration as it is: a
  // warning, and a report whose status says what it was.
  void request_tune();
  void request_tune(const TuneOptions& options);
  bool tuning_requested() const;
  // Turns on tuning mode as `request_tune`, builds what a call with these arguments needs on
  // `device`, and sweeps it in that call, which is not made. In-tree kernels only. Errors: those of
  // a call; what becomes of the sweeps is in `tune_reports`.
  absl::Status tune(const CallArgs& args, const Device& device, const TuneOptions& options = {},
                    const ParamValues& execution_params = {});
  // What sweeps of this instance and its sub-ops have found so far.
  std::vector<TuneReport> tune_reports() const;

  // What has been built for an interface and is kept (RuntimeOptions::max_entries). For an instance
  // that a target serves: the target's kernels, under the target's name, whatever the interface.
  std::vector<BuiltEntry> built_entries(std::string_view interface) const;
  // Every in-tree kernel of every kept entry and sub-op, each once; they live as long as the op.
  std::vector<Kernel*> iter_kernels() const;
  // The configuration in force: the first kernel's that has one, sub-ops' and targets' included.
  Config kernel_config() const;
  // Record of the last call that completed; nullopt before one has, or without
  // OpOptions::record_calls.
  std::optional<CallRecord> last_call() const;
  // Flops and bytes of the last recorded call: bytes count each input and output once. nullopt like
  // last_call().
  std::optional<Roofline> roofline() const;
  // Flops and bytes of a call with these arguments.
  virtual Roofline roofline_of(const CallArgs& args) const;
  // What serves this instance: a target's name, kBuiltin, or nullopt before a call has settled it.
  std::optional<std::string> serving_target() const;

 protected:
  explicit Op(OpInit init);

  // The ops that this one is composed of, owned by it; the same ones at every call. A composite
  // declares no interfaces and plans no kernel calls: its `execute` calls its sub-ops, which settle
  // their own targets.
  virtual std::vector<Op*> sub_ops() const { return {}; }

  // The kernel calls for arguments that have passed the checks. Pure.
  virtual absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const = 0;
  // Runs the planned kernels. The hot path: no allocation, no lock.
  virtual absl::Status execute(const CallView& call) = 0;
  // Scratch memory on the stream's device: at least `bytes`, owned by the op, the same for every
  // call on that stream that asks for no more, or, while the stream is captured, for every call of
  // that capture. So graphs may replay beside each other and beside calls. It is there until the op
  // is gone.
  absl::StatusOr<void*> workspace(const Stream& stream, std::size_t bytes);

  // Lookup by words, for the typed kernel_for: null on a miss.
  const void* find_entry(int interface, const std::uint64_t* words, std::size_t count) const;

 private:
  friend class OpCore;
  std::unique_ptr<OpCore> core_;
};

// The core of an op of `signature` with `params`: parameters completed, implementations checked.
// Errors: InvalidArgument (parameters; kernel types with the fragments of docs/errors.md), NotFound
// (a key in the options).
KILN_EXPORT absl::StatusOr<OpInit> prepare_op(std::string_view op, const ParamValues& params,
                                              const OpOptions& options);

// The base of op classes. Self has:
//   using Interfaces = kiln::Interfaces<Named<"layer_norm_fwd", LayerNormFwdInterface>>;
//   static Signature signature();
//   explicit Self(OpInit init);
template <class Self>
class OpOf : public Op {
 public:
  // An op from parameters by name, as the command line and other languages give them.
  static absl::StatusOr<std::unique_ptr<Self>> create_from(const ParamValues& params,
                                                           const OpOptions& options = {}) {
    absl::StatusOr<OpInit> init = prepare_op(Self::signature().op, params, options);
    if (!init.ok()) return init.status();
    return std::make_unique<Self>(*std::move(init));
  }

  // Typed: an interface that is not the op's, or another call spec, does not compile. A hit is one
  // lookup.
  template <class I>
  absl::StatusOr<const I*> kernel_for(const typename I::Request& call) {
    constexpr int index = registry_detail::index_of<I>(typename Self::Interfaces{});
    static_assert(index >= 0, "not an interface of this op");
    if (call.where == Where{call.where.device}) {
      const auto words = to_words(call);
      if (const void* hit = find_entry(index, words.data(), words.size()))
        return static_cast<const I*>(hit);
    }
    absl::StatusOr<const void*> entry = Op::kernel_for(name_of(index), CallRef(call));
    if (!entry.ok()) return entry.status();
    return static_cast<const I*>(*entry);
  }
  template <class I>
  absl::StatusOr<std::string> key_for(const typename I::Request& call) const {
    constexpr int index = registry_detail::index_of<I>(typename Self::Interfaces{});
    static_assert(index >= 0, "not an interface of this op");
    return Op::key_for(name_of(index), CallRef(call));
  }
  using Op::kernel_for;
  using Op::key_for;

 protected:
  using Op::Op;

 private:
  template <class... N>
  static std::string_view name_at(int index, Interfaces<N...>) {
    constexpr std::string_view names[] = {N::name...};
    return names[index];
  }
  static std::string_view name_of(int index) { return name_at(index, typename Self::Interfaces{}); }
};

}  // namespace kiln::inline v1

#endif  // KILN_OP_H_
