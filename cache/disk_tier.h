#ifndef KILN_CACHE_DISK_TIER_H_
#define KILN_CACHE_DISK_TIER_H_

#include "cache/cache_dir.h"
#include "cache/tier.h"

#include <cstdint>
#include <memory>

namespace kiln::cache {

// A file of an artifact, and which file it was.
struct LoadedFile {
  Artifact artifact;
  FileInfo info;
  std::int64_t bytes = 0;  // of the file
};

// The artifact under `key`, checked in every way. NotFound: there is none. DataLoss: damaged, and
// `info` then says which file that was. FailedPrecondition: of another format. Else: what the file
// system or the folder's state says.
KILN_EXPORT absl::StatusOr<LoadedFile> load_artifact(const CacheDir& dir, const CompileKey& key,
                                                     FileInfo* info = nullptr);

// Moves a damaged file to the quarantine folder, if its name still means the file that was `read`.
// Says what hindered it.
KILN_EXPORT absl::Status set_artifact_aside(const CacheDir& dir, const CompileKey& key,
                                            const FileInfo& read);

// The newest artifact with the source of `wanted`, or null. Keys in `only`, unless empty, are all
// that count.
absl::StatusOr<std::shared_ptr<const Artifact>> find_newest(const CacheDir& dir,
                                                            const Artifact& wanted,
                                                            const std::vector<CompileKey>& only);

// Is there a file of an artifact with the source key of `wanted`, by the names alone? True where
// the folder does not tell.
bool may_have_source(const CacheDir& dir, const Artifact& wanted);

// Artifacts as files in `dir`, one each. Written to a temporary file beside it, synced, renamed,
// and the folder synced: other processes see all of an artifact or none. A file that cannot be what
// was written is moved to the quarantine folder when it is first read. A file's modification time
// is the stamp of its last use, set anew when it is older than an hour. When writes have added up,
// the least recently used files go until `max_bytes` hold (0: no limit).
std::unique_ptr<Tier> make_disk_tier(std::shared_ptr<const CacheDir> dir, std::int64_t max_bytes);

}  // namespace kiln::cache

#endif  // KILN_CACHE_DISK_TIER_H_
