#ifndef KILN_SELECTION_H_
#define KILN_SELECTION_H_

#include <kiln/call_spec.h>
#include <kiln/device.h>
#include <kiln/export.h>
#include <kiln/status.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::inline v1 {

enum class VerdictKind { chosen, lower, refused, unavailable };
KILN_EXPORT std::string_view to_string(VerdictKind kind);

// What selection says of one implementation.
struct Verdict {
  std::string key;
  VerdictKind kind = VerdictKind::unavailable;
  std::string reason;  // why it is not chosen; empty for the chosen one
  std::string origin;
};

// The outcome of one selection. Exactly one implementation is chosen, or `error` says why none is.
struct Selection {
  std::optional<std::string> chosen;
  std::vector<Verdict> verdicts;  // in order of key: the order of registration never matters
  absl::Status error;
};

}  // namespace kiln::inline v1

#endif  // KILN_SELECTION_H_
