#ifndef KILN_CLI_INTERRUPT_H_
#define KILN_CLI_INTERRUPT_H_

#include "cli/session.h"

namespace kiln::cli {

// While it lives, the first SIGINT or SIGTERM asks the command to come to an end: what it is at is
// finished (or ended, where `meanwhile` says so), nothing new is begun, and it says what was done.
// The second ends the process at once; also then no file is half-written under its own name. One at
// a time. `meanwhile` is printed, and must outlive this.
class Interrupt {
 public:
  explicit Interrupt(const char* meanwhile = "what is under way is finished first");
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
  // How the command ends: as it would, or as one that was interrupted.
  Exit exit_or(Exit uninterrupted) const;
};

}  // namespace kiln::cli

#endif  // KILN_CLI_INTERRUPT_H_
