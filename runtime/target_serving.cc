#include "runtime/target_serving.h"

#include "runtime/runtime_impl.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <exception>

namespace kiln::internal {

TargetServing::TargetServing(Runtime::Impl& runtime, std::string op, std::string wanted,
                             bool is_composite)
    : runtime_(runtime),
      op_(std::move(op)),
      wanted_(std::move(wanted)),
      is_composite_(is_composite) {}

std::optional<std::string> TargetServing::settled() const {
  MutexLock lock(mutex_);
  return settled_;
}

absl::StatusOr<std::string> TargetServing::choose(const Device& device) {
  std::string target = wanted_;
  if (target.empty()) {
    MutexLock lock(runtime_.mutex);
    target = runtime_.default_target;
  }
  if (target.empty()) {
    KILN_ASSIGN_OR_RETURN(target, runtime_.detect_target(device));
  }
  if (target.empty() || target == kBuiltin) return std::string(kBuiltin);
  if (!runtime_.knows_target(target)) {
    return with_kind(absl::NotFoundError(absl::StrFormat(
                         "%s: UnknownTarget: no backend registered a target %s; known "
                         "targets: %s",
                         op_, target, runtime_.known_targets())),
                     ErrorKind::unknown_target);
  }
  // A composite without a builder runs its own composition, and each sub-op settles its own target.
  if (is_composite_ && runtime_.builder(op_, target) == nullptr) return std::string(kBuiltin);
  return target;
}

absl::Status TargetServing::with_target(
    const Device& device, const std::function<absl::Status(const std::string& target)>& body) {
  if (const std::optional<std::string> target = settled()) return body(*target);
  MutexLock settling(settling_);
  if (const std::optional<std::string> target = settled()) return body(*target);
  KILN_ASSIGN_OR_RETURN(const std::string target, choose(device));
  const absl::Status status = body(target);
  MutexLock lock(mutex_);
  if (status.ok()) {
    settled_ = target;
    builtin_.store(target == kBuiltin, std::memory_order_release);
  } else {
    rows_.clear();
  }
  return status;
}

absl::StatusOr<TargetKernel*> TargetServing::kernel(
    const std::string& target, const Device& device,
    std::span<const std::optional<TensorSpec>> inputs, const ParamValues& params) {
  MutexLock lock(mutex_);
  for (const auto& row : rows_) {
    if (row->device == device &&
        std::equal(row->inputs.begin(), row->inputs.end(), inputs.begin(), inputs.end())) {
      return row->kernel.get();
    }
  }
  const BuildTargetKernel* build = runtime_.builder(op_, target);
  if (build == nullptr) {
    return with_kind(absl::UnimplementedError(absl::StrFormat(
                         "%s: target %s has no builder for this op, and a selected target does not "
                         "fall back to the "
                         "in-tree kernels; choose target builtin for this op, or one of: %s",
                         op_, target, runtime_.known_targets())),
                     ErrorKind::op_not_available);
  }
  absl::StatusOr<std::unique_ptr<TargetKernel>> kernel = nullptr;
  try {
    kernel = (*build)(inputs, params);
  } catch (const std::exception& e) {
    return absl::InternalError(
        absl::StrFormat("%s: the builder of target %s threw: %s", op_, target, e.what()));
  }
  if (!kernel.ok()) return annotate(kernel.status(), absl::StrFormat("%s: target %s", op_, target));
  if (*kernel == nullptr) {
    return absl::InternalError(
        absl::StrFormat("%s: the builder of target %s made nothing", op_, target));
  }
  rows_.push_back(
      std::make_unique<Row>(Row{device, {inputs.begin(), inputs.end()}, *std::move(kernel)}));
  return rows_.back()->kernel.get();
}

std::vector<TargetKernel*> TargetServing::kernels() const {
  MutexLock lock(mutex_);
  std::vector<TargetKernel*> out;
  for (const auto& row : rows_) out.push_back(row->kernel.get());
  return out;
}

}  // namespace kiln::internal
