#include <kiln/status.h>

#include <absl/strings/cord.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::inline v1 {
namespace {

constexpr char kKindUrl[] = "kiln/error_kind";

constexpr std::array kAllKinds = {ErrorKind::op_not_available, ErrorKind::ambiguous_target,
                                  ErrorKind::unknown_target, ErrorKind::backend_error,
                                  ErrorKind::compile_error};

}  // namespace

absl::Status annotate(const absl::Status& status, std::string_view prefix) {
  if (status.ok()) return status;
  std::string message(prefix);
  message += ": ";
  message += message_of(status);
  absl::Status out(status.code(), message);
  status.ForEachPayload(
      [&out](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::none:
      return "none";
    case ErrorKind::op_not_available:
      return "OpNotAvailable";
    case ErrorKind::ambiguous_target:
      return "AmbiguousTarget";
    case ErrorKind::unknown_target:
      return "UnknownTarget";
    case ErrorKind::backend_error:
      return "BackendError";
    case ErrorKind::compile_error:
      return "CompileError";
  }
  return "invalid";
}

absl::Status with_kind(absl::Status status, ErrorKind kind) {
  if (status.ok()) return status;
  if (kind == ErrorKind::none) {
    status.ErasePayload(kKindUrl);
    return status;
  }
  // The name, not the number: a plugin of another version may know other kinds.
  status.SetPayload(kKindUrl, absl::Cord(std::string(to_string(kind))));
  return status;
}

ErrorKind error_kind(const absl::Status& status) {
  const auto payload = status.GetPayload(kKindUrl);
  if (!payload) return ErrorKind::none;
  const std::string name(*payload);
  for (const ErrorKind kind : kAllKinds) {
    if (name == to_string(kind)) return kind;
  }
  return ErrorKind::none;
}

}  // namespace kiln::inline v1
