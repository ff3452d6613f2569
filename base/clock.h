#ifndef KILN_BASE_CLOCK_H_
#define KILN_BASE_CLOCK_H_

#include <absl/time/time.h>

#include <chrono>

namespace kiln {

// Now by a clock that nobody sets. Only for differences inside this process: waits and time-outs
// measured by `absl::Now()` would grow by as much as the system's clock is set back.
inline absl::Time steady_now() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace kiln

#endif  // KILN_BASE_CLOCK_H_
