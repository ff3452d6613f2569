#include "runtime/plugin_probe.h"

#include <kiln/status.h>

#include "jit/process.h"
#include "runtime/plugins.h"

#include <absl/strings/str_format.h>

#include <cstdio>
#include <unistd.h>

namespace kiln::internal {
namespace {

// Stands before the answer, after whatever the plugin itself printed.
constexpr char kAnswer[] = "\nkiln plugin probe: ";
constexpr char kOpens[] = "opens";

std::vector<std::string> whole_environment() {
  std::vector<std::string> all;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) all.emplace_back(*at);
  return all;
}

}  // namespace

absl::Status probe_plugin(const std::vector<std::string>& command, const std::string& file,
                          absl::Duration limit) {
  jit::ProcessOptions options;
  options.program = command.front();
  options.arguments = command;
  options.arguments.push_back(file);
  options.environment = whole_environment();
  options.deadline = absl::Now() + limit;
  const absl::StatusOr<jit::ProcessResult> ended = jit::run_process(options);
  if (!ended.ok()) {
    if (absl::IsDeadlineExceeded(ended.status())) {
      return absl::DeadlineExceededError(
          absl::StrFormat("%s does not open within %s: a static constructor may hang", file,
                          absl::FormatDuration(limit)));
    }
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s takes the process that opens it along: %s", file, message_of(ended.status())));
  }
  const std::size_t at = ended->output.rfind(kAnswer);
  if (at == std::string::npos) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s ends the process that opens it, with status %d", file, ended->exit_status));
  }
  const std::string answer = ended->output.substr(at + sizeof(kAnswer) - 1);
  if (answer == kOpens) return absl::OkStatus();
  return absl::FailedPreconditionError(answer);
}

int answer_plugin_probe(const std::string& file) {
  const absl::StatusOr<Registry> opened = open_plugin(file);
  const std::string text = kAnswer + (opened.ok() ? kOpens : message_of(opened.status()));
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace kiln::internal
