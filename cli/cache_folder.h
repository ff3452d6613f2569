#ifndef KILN_CLI_CACHE_FOLDER_H_
#define KILN_CLI_CACHE_FOLDER_H_

#include <kiln/status.h>

#include "cache/cache_dir.h"
#include "cli/session.h"

#include <cstddef>
#include <memory>
#include <set>
#include <string>

namespace kiln::cli {

// The folder of the disk cache in force. FailedPrecondition when there is none.
absl::StatusOr<std::string> cache_folder();
// The same as the cache's own code sees it.
absl::StatusOr<std::unique_ptr<cache::CacheDir>> open_cache_folder();
// FailedPrecondition where the folder could not keep what is built.
absl::Status check_cache_keeps();
// How many of the artifacts the folder does not hold.
absl::StatusOr<std::size_t> count_not_kept(const std::set<cache::CompileKey>& keys);

// `kiln cache verify|gc` and `kiln cache export|import|keygen`.
void add_cache_upkeep(CLI::App& cache, Session& session);
void add_cache_packs(CLI::App& cache, Session& session);

}  // namespace kiln::cli

#endif  // KILN_CLI_CACHE_FOLDER_H_
