#ifndef KILN_CACHE_TUNING_FILES_H_
#define KILN_CACHE_TUNING_FILES_H_

#include <kiln/export.h>

#include "base/file_system.h"
#include "cache/cache_dir.h"
#include "cache/pack.h"
#include "cache/signature.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cache {

class RemoteRecords;

struct TuningFilesOptions {
  std::string dir;  // of the cache; empty: nothing is kept
  bool strict = false;
  bool group_shared = false;
  std::vector<std::string> layers;        // read-only folders and packs
  TrustedKeys trusted_keys;               // of packs
  std::shared_ptr<RemoteRecords> remote;  // asked last, written too; null: none
};

// Tuning records as text, by name (letters, digits, '_' and '-'): DIR/tuning/<name>.json, each
// written beside itself, synced and renamed, so that a reader sees all of one or none. The folder
// first, then the layers in order, then the remote store. Whom to trust is as for artifacts.
// Trouble with files is warned of once and counts as absent, unless `strict`. Thread-safe.
class KILN_EXPORT TuningFiles {
 public:
  explicit TuningFiles(const TuningFilesOptions& options, FileSystem& fs = real_file_system());

  // The first text of that name that `usable` takes (null: any). What the remote store had is kept
  // in the folder.
  using Usable = std::function<bool(const std::string& text)>;
  absl::StatusOr<std::optional<std::string>> find(const std::string& name,
                                                  const Usable& usable = nullptr,
                                                  bool ask_remote = true) const;
  bool has_remote() const { return remote_ != nullptr; }
  // Into the folder and the remote store; ok without either.
  absl::Status put(const std::string& name, std::string_view text) const;
  // False: it was not there.
  absl::StatusOr<bool> remove(const std::string& name) const;
  // Name and text of all in the folder, sorted by name.
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> list() const;
  bool has_folder() const { return dir_ != nullptr && dir_->state().ok(); }
  // Where the record of that name lies, for people.
  std::string path_of(const std::string& name) const;

 private:
  static absl::StatusOr<std::optional<std::string>> read(const CacheDir& dir,
                                                         const std::string& name);
  absl::Status keep(const std::string& name, std::string_view text) const;

  std::unique_ptr<CacheDir> dir_;
  std::vector<std::unique_ptr<CacheDir>> folders_;
  std::vector<std::map<std::string, std::string>> packs_;  // of each, its records
  std::vector<std::pair<bool, std::size_t>> layers_;       // a folder, and which of either
  std::shared_ptr<RemoteRecords> remote_;
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_TUNING_FILES_H_
