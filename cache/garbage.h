#ifndef KILN_CACHE_GARBAGE_H_
#define KILN_CACHE_GARBAGE_H_

#include <kiln/export.h>

#include "cache/artifact.h"
#include "cache/cache_dir.h"

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cache {

// A file of the folder, whole or not.
struct ArtifactFile {
  CompileKey key;
  std::string path;
  FileInfo info;  // `modified`: last used, to the hour
};

// The key that the file's name says; nullopt for a file of another kind.
KILN_EXPORT std::optional<CompileKey> key_of_file(std::string_view name);

// All artifact files, those of other format versions too, by path. What vanishes meanwhile is left
// out.
KILN_EXPORT absl::StatusOr<std::vector<ArtifactFile>> list_artifacts(const CacheDir& dir);

struct GarbageRules {
  std::int64_t max_bytes = 0;                // 0: no limit
  absl::Duration temp_age = absl::Hours(1);  // what a writer, or a holder of a lease, left behind
  absl::Duration aside_age = absl::Hours(24 * 30);
  // What was used within this time stays, whatever the limit says: processes that start together
  // find what the first of them wrote.
  absl::Duration grace = absl::Minutes(5);
};

struct GarbageReport {
  std::int64_t files = 0, bytes = 0;  // artifacts left
  std::int64_t evicted = 0, evicted_bytes = 0;
  std::int64_t swept = 0;  // temporary files, dead leases, old quarantine
};

// Removes what was left behind, then artifacts, least recently used first, until nine tenths of
// `max_bytes` hold. Right beside other processes, collecting or not: a file that was used or
// written anew since it was listed stays, and what a process has loaded it has in memory. Errors:
// the folder cannot be listed.
KILN_EXPORT absl::StatusOr<GarbageReport> collect_garbage(const CacheDir& dir,
                                                          const GarbageRules& rules);

// Removes all artifacts, and what was set aside. Returns how many files.
KILN_EXPORT absl::StatusOr<std::int64_t> clear_artifacts(const CacheDir& dir);

}  // namespace kiln::cache

#endif  // KILN_CACHE_GARBAGE_H_
