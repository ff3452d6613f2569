#include "cli/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace kiln::cli {
namespace {

std::atomic<int> received{0};  // lock-free, so a signal handler may
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  if (received.exchange(signal) != 0) ::_exit(128 + signal);
  static constexpr char kText[] =
      "\nkiln: stopping: what is under way is finished first; once more to stop at once\n";
  (void)!::write(STDERR_FILENO, kText, sizeof kText - 1);
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

Interrupt::Interrupt() {
  received = 0;
  handle(on_signal);
}
Interrupt::~Interrupt() { handle(SIG_DFL); }

bool Interrupt::requested() const { return received != 0; }

Exit Interrupt::exit_or(Exit uninterrupted) const {
  return received == 0 ? uninterrupted : received == SIGTERM ? Exit::terminated : Exit::interrupted;
}

}  // namespace kiln::cli
