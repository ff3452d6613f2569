#ifndef KILN_CACHE_MEMORY_TIER_H_
#define KILN_CACHE_MEMORY_TIER_H_

#include "cache/tier.h"

#include <cstdint>
#include <memory>

namespace kiln::cache {

// Artifacts in this process, least recently used dropped first when they exceed `max_bytes`. What
// was put last is always kept. Dropping only lets go of the tier's share: whoever holds an artifact
// keeps it.
std::unique_ptr<Tier> make_memory_tier(std::int64_t max_bytes);

}  // namespace kiln::cache

#endif  // KILN_CACHE_MEMORY_TIER_H_
