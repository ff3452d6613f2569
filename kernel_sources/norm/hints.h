#ifndef KILN_KERNEL_SOURCES_NORM_HINTS_H_
#define KILN_KERNEL_SOURCES_NORM_HINTS_H_

#include <cstdint>

namespace kiln {

// Values of load_hint and store_hint: kiln::Hint of kernel_sources/device/memory.cuh.
inline constexpr std::int64_t kKeep = 0, kStream = 1, kHold = 3;

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_HINTS_H_
