#ifndef KILN_RUNTIME_GUARDED_H_
#define KILN_RUNTIME_GUARDED_H_

#include <absl/status/status.h>
#include <absl/strings/str_format.h>

#include <exception>
#include <string>

namespace kiln::internal {

// Runs code of a plugin; an exception that leaves it becomes a status.
template <class Body>
absl::Status guarded(const std::string& who, const Body& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrFormat("%s threw: %s", who, e.what()));
  } catch (...) {
    return absl::InternalError(absl::StrFormat("%s threw", who));
  }
}

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_GUARDED_H_
