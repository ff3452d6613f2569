#include "tests/support/kill_at.h"

#include <cstdio>
#include <cstdlib>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::testing {
namespace {

constexpr int kSystemCallStop = SIGTRAP | 0x80;

[[noreturn]] void give_up(const char* what, int status) {
  std::fprintf(stderr, "kill_at_system_call: %s must work, got status %#x\n", what, status);
  std::abort();
}

pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) give_up("waitpid", status);
  return status;
}

// Passes everything on up to the signal by which the program says that it is ready.
void reach_ready(pid_t pid) {
  int status = wait_for(pid);  // the exec
  if (!WIFSTOPPED(status)) give_up("tracing", status);
  ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int signal = 0;
  while (true) {
    ::ptrace(PTRACE_CONT, pid, nullptr, signal);
    status = wait_for(pid);
    if (!WIFSTOPPED(status)) give_up("the program", status);
    if (WSTOPSIG(status) == SIGSTOP) return;
    signal = WSTOPSIG(status);
  }
}

}  // namespace

bool kill_at_system_call(const std::vector<std::string>& command, int n) {
  const pid_t pid = start(command);
  reach_ready(pid);
  int signal = 0;
  for (int stops = 0;;) {
    ::ptrace(PTRACE_SYSCALL, pid, nullptr, signal);
    const int status = wait_for(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
    if (!WIFSTOPPED(status)) give_up("the program", status);
    signal = WSTOPSIG(status) == kSystemCallStop ? 0 : WSTOPSIG(status);
    if (signal != 0) continue;
    // Each call stops twice, before and after it.
    if (++stops != 2 * n - 1) continue;
    ::kill(pid, SIGKILL);
    wait_for(pid);
    return true;
  }
}

}  // namespace kiln::testing
