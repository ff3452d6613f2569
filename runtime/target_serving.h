#ifndef KILN_RUNTIME_TARGET_SERVING_H_
#define KILN_RUNTIME_TARGET_SERVING_H_

#include <kiln/op.h>
#include <kiln/runtime.h>
#include <kiln/signature.h>
#include <kiln/target.h>

#include "base/mutex.h"

#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln::internal {

// Which target serves an op instance, and the target's kernels for it. Settled once, by the first
// call that must run something; undone when that call fails. Thread-safe; no code of a backend is
// run with a lock held but the one that makes first calls wait for each other.
class TargetServing {
 public:
  // `wanted`: the op's own choice; empty: the process's default, else what the detectors say.
  TargetServing(Runtime::Impl& runtime, std::string op, std::string wanted, bool is_composite);

  // Runs `body` with the name of the target that serves ("builtin": in-tree). The first call
  // settles the name and runs alone; when its `body` fails, the choice and what it built are
  // undone. Errors: AmbiguousTarget, UnknownTarget, OpNotAvailable, those of `body`.
  absl::Status with_target(const Device& device,
                           const std::function<absl::Status(const std::string& target)>& body);

  // The target's kernel for these specs, built on first use: once, also when many ask at the same
  // time. A failed build is not remembered.
  absl::StatusOr<TargetKernel*> kernel(const std::string& target, const Device& device,
                                       std::span<const std::optional<TensorSpec>> inputs,
                                       const ParamValues& params);

  // Turns on tuning of the kernels there are and of those to come. A kernel that cannot tune is
  // warned of, once for the instance.
  void request_tune();

  std::optional<std::string> settled() const;
  // The kernels of the settled target, as entries: key is the target's name, the identity the
  // device and the inputs' specs. Empty before a target is settled.
  std::vector<BuiltEntry> built() const;

 private:
  // Words of device, and of each input: whether it is passed, dtype, shape.
  using Key = std::vector<std::uint64_t>;
  struct Row {
    std::string text;  // the key, for people
    Notification done;
    absl::Status status;  // read after `done`
    std::shared_ptr<TargetKernel> kernel;
  };
  absl::StatusOr<std::string> choose(const Device& device);
  absl::StatusOr<std::shared_ptr<TargetKernel>> build(
      const std::string& target, std::span<const std::optional<TensorSpec>> inputs,
      const ParamValues& params);
  void tune(TargetKernel& kernel);

  Runtime::Impl& runtime_;
  const std::string op_;
  const std::string wanted_;
  const bool is_composite_;
  std::atomic<bool> warned_{false};
  Mutex settling_;  // held by the call that settles
  mutable Mutex mutex_;
  std::optional<std::string> settled_ ABSL_GUARDED_BY(mutex_);
  bool tuning_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<Key, std::shared_ptr<Row>> rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TARGET_SERVING_H_
