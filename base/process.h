#ifndef KILN_BASE_PROCESS_H_
#define KILN_BASE_PROCESS_H_

#include <kiln/export.h>

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

// Which process, on which machine: enough to tell later, from the same machine, whether it is gone.
struct ProcessId {
  std::string
      host;  // host name, boot and pid namespace: equal only where process numbers mean the same
  std::int64_t pid = 0;
  std::int64_t start = -1;  // clock ticks after boot, -1 if unknown: tells a reused number apart
  bool operator==(const ProcessId&) const = default;
};

// The calling process; asked of the system each time, so that it is right after a fork.
KILN_EXPORT ProcessId current_process();

// True only when it is certain: same `host`, and no such process (a zombie counts as none), or a
// younger one.
KILN_EXPORT bool is_gone(const ProcessId& process);

// FailedPrecondition in a process that was forked from `owner`, whose `what` is: locks may have
// been held at the fork by threads that the child does not have. Takes no lock itself.
KILN_EXPORT absl::Status check_not_forked(std::int64_t owner, std::string_view what);

}  // namespace kiln

#endif  // KILN_BASE_PROCESS_H_
