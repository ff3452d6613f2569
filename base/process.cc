#include "base/process.h"

#include <absl/strings/str_format.h>

#include <cstdint>
#include <errno.h>
#include <fstream>
#include <signal.h>
#include <sstream>
#include <string>
#include <unistd.h>

namespace kiln {
namespace {

std::string host_identity() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char space[64] = {};
  if (::readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = '\0';
  return absl::StrFormat("%s/%s/%s", name, boot, space);
}

struct ProcStat {
  char state = '?';
  std::int64_t start = -1;
};

// Fields 3 and 22 of /proc/<pid>/stat. The command name before them may hold spaces and
// parentheses.
ProcStat read_proc_stat(std::int64_t pid) {
  ProcStat out;
  std::string text;
  std::getline(std::ifstream(absl::StrFormat("/proc/%d/stat", pid)), text, '\0');
  const std::size_t paren = text.rfind(')');
  if (paren == std::string::npos) return out;
  std::istringstream fields(text.substr(paren + 1));
  fields.imbue(std::locale::classic());
  std::string skipped;
  fields >> out.state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  if (!(fields >> out.start)) out.start = -1;
  return out;
}

}  // namespace

ProcessId current_process() {
  const std::int64_t pid = ::getpid();
  return {host_identity(), pid, read_proc_stat(pid).start};
}

bool is_gone(const ProcessId& process) {
  if (process.pid <= 0 || process.host != host_identity()) return false;
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return true;
  const ProcStat now = read_proc_stat(process.pid);
  if (now.state == 'Z' || now.state == 'X') return true;
  return process.start >= 0 && now.start >= 0 && now.start != process.start;
}

absl::Status check_not_forked(std::int64_t owner, std::string_view what) {
  const std::int64_t self = ::getpid();
  if (self == owner) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: must be used by the process that made it: process %d was forked from "
                      "%d; build before the fork what the "
                      "child needs, or start a new program (exec)",
                      what, self, owner));
}

}  // namespace kiln
