#ifndef KILN_CACHE_CACHE_DIR_H_
#define KILN_CACHE_CACHE_DIR_H_

#include "base/file_system.h"
#include "cache/artifact.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::cache {

// By how much clocks of hosts that share a folder may differ.
inline constexpr absl::Duration kClockSkew = absl::Minutes(5);

// How a folder is used.
struct FolderRules {
  bool strict = false;
  bool create = true;  // false: a read-only layer; nothing below it is made or changed
  // Members of the folder's group, one of this process's own, are trusted like this user: files may
  // be theirs, and what is made is writable by the group. Never on by itself.
  bool group_shared = false;
};

// Ok when `path` is a `want` that nobody but this user and root could have written, or members of
// `group` where one is given. PermissionDenied names what must hold.
absl::Status check_trusted(const FileInfo& info, FileType want, const std::string& path,
                           std::optional<std::uint32_t> group = std::nullopt);

// The folder of a disk tier: its layout, whom it trusts, and what happens when it gives trouble.
//
//   DIR/v1/ab/<64 hex>.kiln     an artifact whose key begins with ab
//   DIR/v1/ab/tmp.<unique>      one being written
//   DIR/leases/<64 hex>.lease   the right to build one
//   DIR/tuning/<32 hex>.json    a tuning record
//   DIR/quarantine/<64 hex>.kiln  a damaged one, the newest for each key
//
// A cached binary is code. Folders and files must therefore belong to this user or to root, and
// nobody else may have been able to write them; links are not followed. Thread-safe.
class KILN_EXPORT CacheDir {
 public:
  // `path` is made absolute once, so that a later change or removal of the current folder does not
  // matter.
  CacheDir(FileSystem& fs, std::string path, FolderRules rules);

  // Ok when the folder exists or could be made, and is trusted.
  const absl::Status& state() const { return state_; }
  const std::string& path() const { return path_; }
  FileSystem& fs() const { return fs_; }
  bool is_writable() const { return rules_.create; }

  std::string artifact_folder(const CompileKey& key) const;
  std::string artifact_path(const CompileKey& key) const;
  std::string quarantine_path(const CompileKey& key) const;
  std::string lease_path(const CompileKey& key) const;
  std::string lease_folder() const { return path_ + "/leases"; }
  std::string quarantine_folder() const { return path_ + "/quarantine"; }
  std::string tuning_folder() const { return path_ + "/tuning"; }

  // A file for writing that others of the group may replace where the folder is shared.
  absl::StatusOr<Fd> create_file(const std::string& path) const;
  // All of an open file if it is trusted; `info` says which one it is. The folders above it are the
  // caller's to check.
  absl::StatusOr<std::string> read_file(const Fd& fd, const std::string& path,
                                        std::int64_t max_bytes, FileInfo& info) const;
  // Makes or replaces `name` in `folder`, one of the above: others see all of it, or what was there
  // before. On the disk when this returns.
  absl::Status write_file(const std::string& folder, const std::string& name,
                          std::string_view bytes) const;
  // Makes `folder`, one of the above, as far as it is missing, and checks it.
  absl::Status make_folder(const std::string& folder) const;
  // Ok: trusted. NotFound: not there. PermissionDenied: names what must hold.
  absl::Status check_folder(const std::string& folder) const;
  absl::Status check_file(const FileInfo& info, const std::string& path) const;

  // Counts `status` and warns once for each kind of it. Returns it when strict, else ok.
  absl::Status trouble(const absl::Status& status) const;
  std::int64_t errors() const { return errors_.load(); }

 private:
  absl::Status prepare();
  absl::Status write_synced(const std::string& path, std::string_view bytes) const;
  absl::Status make_shared_dirs(const std::string& folder) const;
  absl::Status check(const FileInfo& info, FileType want, const std::string& path) const;

  FileSystem& fs_;
  std::string path_;
  const FolderRules rules_;
  std::optional<std::uint32_t> group_;  // whose members are trusted, where the folder is shared
  absl::Status state_;
  mutable std::atomic<std::int64_t> errors_{0};
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_CACHE_DIR_H_
