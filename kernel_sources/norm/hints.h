#ifndef KILN_KERNEL_SOURCES_NORM_HINTS_H_
#define KILN_KERNEL_SOURCES_NORM_HINTS_H_

#include <cstdint>

namespace kiln {

// Values of load_hint and store_hint: kiln::Hint of kernel_sources/device/memory.cuh.
inline constexpr std::int64_t kKeep = 0, kStream = 1, kHold = 3;

// kHold where it was measured: on sm_90, with accesses of 16 bytes; else `hint`.
constexpr std::int64_t hold_or(std::int64_t hint, int arch, std::int64_t access_bytes) {
  return arch == 90 && access_bytes == 16 ? kHold : hint;
}
// The other of kKeep and kHold.
constexpr std::int64_t other_hold(std::int64_t hint) { return hint == kHold ? kKeep : kHold; }

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_HINTS_H_
