#include "cli/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::cli {
namespace {

std::atomic<int> received{0};  // lock-free, so a signal handler may
static_assert(std::atomic<int>::is_always_lock_free);

std::atomic<const char*> said{""};

// Not by the C library's functions, which a preloaded library may wrap (jit/worker_main.cc).
void say(const char* text) { ::syscall(SYS_write, STDERR_FILENO, text, std::strlen(text)); }

void on_signal(int signal) {
  if (received.exchange(signal) != 0) ::syscall(SYS_exit_group, 128 + signal);
  say("\nkiln: stopping: ");
  say(said);
  say("; once more to stop at once\n");
}

void handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM}) {
    // Who started us with a signal ignored (nohup, a script's background job) wants it so.
    struct sigaction old = {};
    if (::sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) continue;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

Interrupt::Interrupt(const char* meanwhile) {
  received = 0;
  said = meanwhile;
  handle(on_signal);
}
Interrupt::~Interrupt() { handle(SIG_DFL); }

bool Interrupt::requested() const { return received != 0; }

Exit Interrupt::exit_or(Exit uninterrupted) const {
  return received == 0 ? uninterrupted : received == SIGTERM ? Exit::terminated : Exit::interrupted;
}

}  // namespace kiln::cli
