#ifndef KILN_KERNEL_SOURCES_NORM_SETS_HELD_H_
#define KILN_KERNEL_SOURCES_NORM_SETS_HELD_H_

#include "sets.h"

#include <cstdint>
#include <vector>

// The configurations of SplitSets in which the blocks together hold sets on chip (sets_held.cu):
// those with "slots". They need a device whose multiprocessors have room for two sets.
namespace kiln {

// The first is the default; none where the device has no room, or accesses are narrower than 16
// bytes. `packs`: of a set.
std::vector<Config> held_configs(const SetsFacts& facts, std::int64_t packs,
                                 const DeviceFacts& device);

Program held_program(const SetsFacts& facts, const Config& config);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_SETS_HELD_H_
