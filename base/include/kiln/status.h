#ifndef KILN_STATUS_H_
#define KILN_STATUS_H_

#include <kiln/export.h>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <utility>

// Errors are absl::Status and absl::StatusOr; no exception crosses a public header. A message reads
//   who: what must hold: want W, got G; what to do
// and always holds the value that was received. Codes:
//   InvalidArgument     bad input                     NotFound            a named thing does not
//   exist Unimplemented       no implementation serves it   AlreadyExists       registered twice
//   FailedPrecondition  wrong state (no driver, capture in progress, policy forbids, other
//   contract) ResourceExhausted   memory, devices, workers      DeadlineExceeded    a time limit
//   passed Unavailable         try again                     Aborted             sticky device
//   error DataLoss            damaged artifact (internal)   Internal            a fault of Kiln
//   itself
namespace kiln::inline v1 {

// The message as a standard string (Debian's absl::string_view is a type of its own).
inline std::string message_of(const absl::Status& status) { return std::string(status.message()); }

// `status` with "prefix: " before its message; code and payloads stay. An ok status stays ok.
KILN_EXPORT absl::Status annotate(const absl::Status& status, std::string_view prefix);

// Kinds that a caller may want to tell apart, beside the code. A status carries at most one.
enum class ErrorKind {
  none,
  op_not_available,
  ambiguous_target,
  unknown_target,
  backend_error,
  compile_error
};

KILN_EXPORT std::string_view to_string(ErrorKind kind);
KILN_EXPORT absl::Status with_kind(absl::Status status, ErrorKind kind);
KILN_EXPORT ErrorKind error_kind(const absl::Status& status);

inline bool is_op_not_available(const absl::Status& s) {
  return error_kind(s) == ErrorKind::op_not_available;
}
inline bool is_ambiguous_target(const absl::Status& s) {
  return error_kind(s) == ErrorKind::ambiguous_target;
}
inline bool is_unknown_target(const absl::Status& s) {
  return error_kind(s) == ErrorKind::unknown_target;
}
inline bool is_backend_error(const absl::Status& s) {
  return error_kind(s) == ErrorKind::backend_error;
}
inline bool is_compile_error(const absl::Status& s) {
  return error_kind(s) == ErrorKind::compile_error;
}

}  // namespace kiln::inline v1

#define KILN_CONCAT_INNER_(a, b) a##b
#define KILN_CONCAT_(a, b) KILN_CONCAT_INNER_(a, b)

// Returns from the enclosing function when `expr`, an absl::Status, is not ok.
#define KILN_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                 \
    if (::absl::Status kiln_status_ = (expr); !kiln_status_.ok()) return kiln_status_; \
  } while (false)

// KILN_ASSIGN_OR_RETURN(lhs, expr): assigns the value of `expr`, an absl::StatusOr, or returns its
// status.
#define KILN_ASSIGN_OR_RETURN(lhs, ...) \
  KILN_ASSIGN_OR_RETURN_(KILN_CONCAT_(kiln_statusor_, __LINE__), lhs, (__VA_ARGS__))
#define KILN_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = expr;                             \
  if (!tmp.ok()) return tmp.status();          \
  lhs = *std::move(tmp)

#endif  // KILN_STATUS_H_
