#ifndef KILN_CACHE_LAYER_TIER_H_
#define KILN_CACHE_LAYER_TIER_H_

#include "base/file_system.h"
#include "cache/pack.h"
#include "cache/signature.h"
#include "cache/tier.h"

#include <memory>
#include <string>
#include <vector>

namespace kiln::cache {

// A pack file, opened after the checks that hold for every cached file: it belongs to this user or
// root, nobody else can write it, it is no link. Errors: those of Pack::open, PermissionDenied,
// NotFound.
KILN_EXPORT absl::StatusOr<std::unique_ptr<Pack>> open_pack_file(FileSystem& fs,
                                                                 const std::string& path,
                                                                 const TrustedKeys& trusted);

// Folders and packs that are only read, in the order given. One that cannot be used is skipped,
// with one warning. A folder may name the artifacts that serve whatever the compiler: a file
// DIR/manifest, one key of 64 hex digits a line. Host shared objects are taken from folders and
// from signed packs, never from others.
class LayerTier : public Tier {
 public:
  virtual std::vector<LayerInfo> layers() const = 0;
};
std::unique_ptr<LayerTier> make_layer_tier(FileSystem& fs, const std::vector<std::string>& paths,
                                           const TrustedKeys& trusted);

}  // namespace kiln::cache

#endif  // KILN_CACHE_LAYER_TIER_H_
