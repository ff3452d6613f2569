#ifndef KILN_RUNTIME_PLUGIN_PROBE_H_
#define KILN_RUNTIME_PLUGIN_PROBE_H_

#include <kiln/export.h>

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <string>
#include <vector>

namespace kiln::internal {

// Whether a plugin can be opened, found out in a process of its own: a static constructor that
// crashes or hangs takes that process with it and not this one. `command` is a program and its
// arguments that calls `answer_plugin_probe` with the file that is appended to them.
//
// Errors: FailedPrecondition with the reason: what `open_plugin` says, the signal that ended the
// process, an exit without an answer; DeadlineExceeded when there is none after `limit`.
KILN_EXPORT absl::Status probe_plugin(const std::vector<std::string>& command,
                                      const std::string& file,
                                      absl::Duration limit = absl::Seconds(30));

// The other side: opens the plugin, writes the answer to stdout. The exit status is 0 when there
// was an answer, whatever it says.
KILN_EXPORT int answer_plugin_probe(const std::string& file);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_PLUGIN_PROBE_H_
