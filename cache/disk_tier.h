#ifndef KILN_CACHE_DISK_TIER_H_
#define KILN_CACHE_DISK_TIER_H_

#include "cache/cache_dir.h"
#include "cache/tier.h"

#include <memory>

namespace kiln::cache {

// Artifacts as files in `dir`, one each. Written to a temporary file beside it, synced, renamed,
// and the folder synced: other processes see all of an artifact or none. A file that cannot be what
// was written is moved to the quarantine folder when it is first read.
std::unique_ptr<Tier> make_disk_tier(std::shared_ptr<const CacheDir> dir);

}  // namespace kiln::cache

#endif  // KILN_CACHE_DISK_TIER_H_
