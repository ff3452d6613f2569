#include "base/fd.h"

#include <unistd.h>
#include <utility>

namespace kiln {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  // Never retried after EINTR: on Linux the descriptor is gone then, and its number may be another
  // thread's already.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace kiln
