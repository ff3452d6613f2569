#ifndef KILN_CACHE_REMOTE_TIER_H_
#define KILN_CACHE_REMOTE_TIER_H_

#include "cache/remote_link.h"
#include "cache/tier.h"

#include <memory>

namespace kiln::cache {

// Artifacts in a store that machines share. Nothing that comes from it is believed before it was
// checked in every way; trouble is counted and is a miss. Beside each artifact the store keeps,
// under its source key alone, which key was written last: what serves a machine without a compiler.
// Host objects, code for this very process, are neither read nor written. With `strict` trouble of
// the store is an error.
std::unique_ptr<Tier> make_remote_tier(std::shared_ptr<RemoteLink> link, const TrustedKeys& trusted,
                                       bool strict);

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_TIER_H_
