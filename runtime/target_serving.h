#ifndef KILN_RUNTIME_TARGET_SERVING_H_
#define KILN_RUNTIME_TARGET_SERVING_H_

#include <kiln/runtime.h>
#include <kiln/signature.h>
#include <kiln/target.h>

#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace kiln::internal {

// Which target serves an op instance, and the target's kernels for it. Settled once, by the first
// call that must run something; undone when that call fails. Thread-safe.
class TargetServing {
 public:
  // `wanted`: the op's own choice; empty: the process's default, else what the detectors say.
  TargetServing(Runtime::Impl& runtime, std::string op, std::string wanted, bool is_composite);

  // Runs `body` with the name of the target that serves ("builtin": in-tree). The first call
  // settles the name and runs alone; when its `body` fails, the choice and what it built are
  // undone. Errors: AmbiguousTarget, UnknownTarget, OpNotAvailable, those of `body`.
  absl::Status with_target(const Device& device,
                           const std::function<absl::Status(const std::string& target)>& body);

  // The target's kernel for these specs, built on first use.
  absl::StatusOr<TargetKernel*> kernel(const std::string& target, const Device& device,
                                       std::span<const std::optional<TensorSpec>> inputs,
                                       const ParamValues& params);

  std::optional<std::string> settled() const;
  // True in one relaxed read when the instance is known to be served in-tree.
  bool is_builtin() const { return builtin_.load(std::memory_order_acquire); }
  std::vector<TargetKernel*> kernels() const;

 private:
  absl::StatusOr<std::string> choose(const Device& device);

  Runtime::Impl& runtime_;
  const std::string op_;
  const std::string wanted_;
  const bool is_composite_;
  std::atomic<bool> builtin_{false};
  Mutex settling_;  // held by the call that settles
  mutable Mutex mutex_;
  std::optional<std::string> settled_ ABSL_GUARDED_BY(mutex_);
  struct Row {
    Device device;
    std::vector<std::optional<TensorSpec>> inputs;
    std::unique_ptr<TargetKernel> kernel;
  };
  std::vector<std::unique_ptr<Row>> rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TARGET_SERVING_H_
