#include "runtime/target_serving.h"

#include "base/log.h"
#include "runtime/guarded.h"
#include "runtime/messages.h"
#include "runtime/runtime_impl.h"

#include <absl/strings/str_format.h>

#include <utility>

namespace kiln::internal {
namespace {

std::vector<std::uint64_t> key_of(const Device& device,
                                  std::span<const std::optional<TensorSpec>> inputs) {
  std::vector<std::uint64_t> key{device_word(device)};
  for (const std::optional<TensorSpec>& spec : inputs) {
    // An input that is not passed keeps its place, so (a, none) and (none, a) differ.
    key.push_back(spec ? 1 : 0);
    if (!spec) continue;
    key.push_back(device_word(spec->device));
    key.push_back(static_cast<std::uint64_t>(spec->dtype));
    key.push_back(static_cast<std::uint64_t>(spec->shape.size()));
    for (std::int64_t extent : spec->shape) key.push_back(static_cast<std::uint64_t>(extent));
  }
  return key;
}

std::string text_of(const Device& device, std::span<const std::optional<TensorSpec>> inputs) {
  std::string text = "(" + to_string(device);
  for (const std::optional<TensorSpec>& spec : inputs) {
    text += spec ? ", " + std::string(to_string(spec->dtype)) + to_string(spec->shape) : ", none";
  }
  return text + ")";
}

}  // namespace

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
    return with_kind(
        absl::NotFoundError(absl::StrFormat("%s: %s %s; known targets: %s", op_, kUnknownTarget,
                                            target, runtime_.known_targets())),
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
  absl::StatusOr<std::string> target = choose(device);
  if (!target.ok()) {
    return error_kind(target.status()) == ErrorKind::unknown_target
               ? target.status()
               : annotate(target.status(), op_);
  }
  absl::Status status = body(*target);
  MutexLock lock(mutex_);
  if (status.ok())
    settled_ = *target;
  else
    rows_.clear();
  return status;
}

absl::StatusOr<std::shared_ptr<TargetKernel>> TargetServing::build(
    const std::string& target, std::span<const std::optional<TensorSpec>> inputs,
    const ParamValues& params) {
  const BuildTargetKernel* build = runtime_.builder(op_, target);
  if (build == nullptr) {
    return with_kind(
        absl::UnimplementedError(absl::StrFormat(
            "%s: target %s %s, and a selected target does not fall back to the in-tree kernels; "
            "choose target builtin for this op, or one of: %s",
            op_, target, kNoBuilder, runtime_.known_targets())),
        ErrorKind::op_not_available);
  }
  std::shared_ptr<TargetKernel> kernel;
  KILN_RETURN_IF_ERROR(
      guarded(absl::StrFormat("%s: the builder of target %s", op_, target), [&]() -> absl::Status {
        absl::StatusOr<std::unique_ptr<TargetKernel>> made = (*build)(inputs, params);
        if (!made.ok())
          return annotate(made.status(), absl::StrFormat("%s: target %s", op_, target));
        kernel = *std::move(made);
        return absl::OkStatus();
      }));
  if (kernel == nullptr) {
    return absl::InternalError(
        absl::StrFormat("%s: the builder of target %s made nothing", op_, target));
  }
  return kernel;
}

absl::StatusOr<TargetKernel*> TargetServing::kernel(
    const std::string& target, const Device& device,
    std::span<const std::optional<TensorSpec>> inputs, const ParamValues& params) {
  Key key = key_of(device, inputs);
  std::shared_ptr<Row> row;
  bool ours = false;
  {
    MutexLock lock(mutex_);
    std::shared_ptr<Row>& at = rows_[key];
    ours = at == nullptr;
    if (ours) at = std::make_shared<Row>();
    row = at;
  }
  if (!ours) {
    row->done.wait();
    KILN_RETURN_IF_ERROR(row->status);
    return row->kernel.get();
  }
  row->text = text_of(device, inputs);
  absl::StatusOr<std::shared_ptr<TargetKernel>> kernel = build(target, inputs, params);
  bool tuning = false;
  {
    MutexLock lock(mutex_);
    row->status = kernel.status();
    if (kernel.ok())
      row->kernel = *kernel;
    else
      rows_.erase(key);
    tuning = tuning_;
  }
  if (kernel.ok() && tuning) tune(**kernel);
  row->done.notify();
  KILN_RETURN_IF_ERROR(row->status);
  return row->kernel.get();
}

void TargetServing::tune(TargetKernel& kernel) {
  const absl::Status asked =
      guarded(absl::StrFormat("%s: request_tune of its target", op_), [&]() -> absl::Status {
        return kernel.request_tune() ? absl::OkStatus()
                                     : absl::UnimplementedError(absl::StrFormat(
                                           "%s: tuning was requested, and a kernel of its target "
                                           "does not offer request_tune: it keeps what it has",
                                           op_));
      });
  if (!asked.ok() && !warned_.exchange(true)) log(LogLevel::warning, message_of(asked));
}

void TargetServing::request_tune() {
  std::vector<std::shared_ptr<TargetKernel>> there;
  {
    MutexLock lock(mutex_);
    if (std::exchange(tuning_, true)) return;
    for (const auto& [key, row] : rows_) {
      if (row->kernel != nullptr) there.push_back(row->kernel);
    }
  }
  for (const auto& kernel : there) tune(*kernel);
}

std::vector<BuiltEntry> TargetServing::built() const {
  std::vector<std::pair<BuiltEntry, std::shared_ptr<TargetKernel>>> rows;
  {
    MutexLock lock(mutex_);
    if (!settled_) return {};
    for (const auto& [key, row] : rows_) {
      if (row->kernel != nullptr)
        rows.emplace_back(BuiltEntry{*settled_, BuildIdentity(key, row->text), {}, {}},
                          row->kernel);
    }
  }
  std::vector<BuiltEntry> out;
  for (auto& [entry, kernel] : rows) {
    // A config that throws is as good as none here.
    guarded(op_, [&entry = entry, &kernel = kernel] {
      entry.config = kernel->config().value_or(Config());
      return absl::OkStatus();
    }).IgnoreError();
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace kiln::internal
