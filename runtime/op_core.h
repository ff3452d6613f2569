#ifndef KILN_RUNTIME_OP_CORE_H_
#define KILN_RUNTIME_OP_CORE_H_

#include <kiln/op.h>

#include "base/hash128.h"
#include "base/mutex.h"
#include "runtime/dispatcher.h"
#include "runtime/hit_table.h"
#include "runtime/op_scratch.h"
#include "runtime/op_tuning.h"
#include "runtime/target_serving.h"

#include <absl/status/statusor.h>

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kiln::inline v1 {

// The state behind an Op. Thread-safe.
class OpCore {
 public:
  // Checks parameters, options and every implementation registered for the op so far.
  static absl::StatusOr<std::unique_ptr<OpCore>> make(Runtime& runtime, const OpType& type,
                                                      const ParamValues& params,
                                                      const OpOptions& options);
  OpCore(Runtime& runtime, const OpType& type, ParamValues params, OpOptions options);
  // Scratch memory is freed: the op's work must have ended.
  ~OpCore() = default;

  Runtime& runtime() const { return runtime_; }
  const Signature& signature() const { return type_.signature; }
  const ParamValues& params() const { return params_; }
  const OpOptions& options() const { return options_; }
  CompilePolicy policy() const { return options_.policy.value_or(runtime_.options().policy); }
  internal::MissOptions miss_options() const;
  bool is_composite() const { return dispatchers_.empty(); }

  // NotFound lists the interfaces there are.
  absl::StatusOr<internal::Dispatcher*> dispatcher(std::string_view interface) const;
  internal::Dispatcher& dispatcher_at(std::size_t i) const { return *dispatchers_[i]; }
  const std::vector<std::unique_ptr<internal::Dispatcher>>& dispatchers() const {
    return dispatchers_;
  }

  // A whole call that is not remembered: checks, target, plan, dispatch, execution.
  absl::Status call(Op& op, const Stream& stream, std::span<const Tensor* const> inputs,
                    std::span<const Tensor* const> outputs, const ParamValues& execution_params);

  // What serves the kernel calls of a plan, built if need be, and tuned if that was asked for.
  struct Resolved {
    std::vector<const void*> kernels;
    std::vector<std::shared_ptr<const internal::EntryRow>> rows;  // to be held while they are used
    bool kept = true;  // all of them are: there is nothing to wait for
    bool stand_ins = false;
  };
  absl::StatusOr<Resolved> resolve(const std::vector<KernelCall>& plan, const Device& device,
                                   const internal::MissOptions& options, const CallArgs& args,
                                   const ParamValues& execution);

  std::shared_future<absl::Status> prefetch(const absl::StatusOr<std::vector<KernelCall>>& plan,
                                            const Device& device);

  // The memory of calls: what serves tensors of known dtypes, shapes, strides and alignment.
  internal::HitTable& memory() { return memory_; }
  internal::TargetServing& serving() { return serving_; }
  internal::OpTuning& tuning() { return tuning_; }
  // The op that this is the core of; set before any call.
  void adopt(Op& op) { op_ = &op; }
  absl::Status execute(const CallView& call) { return op_->execute(call); }

  absl::StatusOr<void*> workspace(const Stream& stream, std::size_t bytes) {
    return scratch_.get(stream, bytes);
  }
  void record(CallRecord record);
  void record(const Stream& stream, std::span<const Tensor* const> inputs,
              std::span<const Tensor* const> outputs, std::span<const void* const> kernels);
  // The implementations' keys of entries in use.
  std::vector<std::string> keys_of(std::span<const void* const> kernels) const;
  std::optional<CallRecord> last_call() const;

 private:
  // Appends a call to the runtime's file of recorded calls, where it has one. Not on the hit path.
  void record_for_warming(const Stream& stream, const CallArgs& args, const ParamValues& execution,
                          const std::vector<std::uint64_t>& key);
  absl::Status call_in_tree(Op& op, const CallView& view, const CallArgs& args,
                            const std::vector<std::uint64_t>& key, std::vector<std::string>& keys);
  absl::Status check_tensors(const Stream& stream, std::span<const Tensor* const> inputs,
                             std::span<const Tensor* const> outputs, CallArgs& args) const;
  // Replaces inputs that are to be contiguous and are not by copies, made in order of the stream:
  // those declared so, or all that are only read.
  absl::Status make_contiguous(const Stream& stream, bool declared_only,
                               std::vector<const Tensor*>& inputs, std::vector<OwnedTensor>& copies,
                               CallArgs& args);

  Runtime& runtime_;
  const OpType& type_;
  const ParamValues params_;
  const OpOptions options_;
  std::vector<std::unique_ptr<internal::Dispatcher>> dispatchers_;
  internal::HitTable memory_;
  internal::TargetServing serving_;
  internal::OpTuning tuning_;
  internal::OpScratch scratch_;
  Op* op_ = nullptr;

  mutable Mutex mutex_;
  std::optional<CallRecord> last_call_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<Hash128, Hash128Hasher> recorded_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::inline v1

namespace kiln::internal {

// Kernel calls of one plan that are remembered; a plan with more goes the whole way each time.
inline constexpr std::size_t kMaxRememberedKernels = 6;
// Words of a call's key at most.
inline constexpr std::size_t kMaxCallWords = 64;

// Writes what `call` depends on (dtypes, shapes, strides, alignment, presence, device, null data)
// to `words`, and returns how many; 0 when they do not fit. Two calls with equal words pass or fail
// the same checks and have the same plan.
std::size_t call_words(const Stream& stream, std::span<const Tensor* const> inputs,
                       std::span<const Tensor* const> outputs, std::uint64_t* words);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_OP_CORE_H_
