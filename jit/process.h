#ifndef KILN_JIT_PROCESS_H_
#define KILN_JIT_PROCESS_H_

#include <kiln/export.h>

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <string>
#include <vector>

namespace kiln::jit {

struct ProcessOptions {
  std::string program;                   // path of the executable
  std::vector<std::string> arguments;    // argv, the program's name first
  std::vector<std::string> environment;  // "NAME=VALUE": all that the child gets
  std::string folder;                    // its current directory; empty: ours
  absl::Time deadline = absl::InfiniteFuture();
  std::function<bool()> cancelled;  // asked ten times a second or more; may be empty
  std::size_t max_output_bytes = 1 << 20;
};

struct ProcessResult {
  int exit_status = 0;
  std::string output;  // stdout and stderr in the order they came, at most max_output_bytes of them
};

// Runs a program to its end, by posix_spawn and without a shell. It leads a process group of its
// own and inherits no descriptor but its three (stdin is empty). At the deadline, or once it is
// cancelled, the whole group is killed. Errors: FailedPrecondition (cannot be started),
// DeadlineExceeded, Cancelled, ResourceExhausted (ended by a signal).
KILN_EXPORT absl::StatusOr<ProcessResult> run_process(const ProcessOptions& options);

}  // namespace kiln::jit

#endif  // KILN_JIT_PROCESS_H_
