#include "cache/cache_dir.h"

#include <kiln/status.h>

#include "base/log.h"

#include <absl/strings/str_format.h>

#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace kiln::cache {
namespace {

constexpr std::uint32_t kWritableByOthers = 0022;

std::string_view name_of(FileType type) {
  switch (type) {
    case FileType::regular:
      return "a file";
    case FileType::directory:
      return "a folder";
    case FileType::symlink:
      return "a link";
    case FileType::other:
      return "something else";
  }
  return "something else";
}

absl::Status check(const FileInfo& info, FileType want, const std::string& path) {
  if (info.type != want) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "cache: %s must be %s, got %s; it is not used", path, name_of(want), name_of(info.type)));
  }
  if (info.owner != ::geteuid() && info.owner != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("cache: %s must belong to user %d or root, got user %d; it is not used",
                        path, ::geteuid(), info.owner));
  }
  if ((info.mode & kWritableByOthers) != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "cache: %s must not be writable by group or others, got mode %04o; it is not used", path,
        info.mode));
  }
  return absl::OkStatus();
}

}  // namespace

CacheDir::CacheDir(FileSystem& fs, std::string path, bool strict)
    : fs_(fs), path_(std::move(path)), strict_(strict) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  state_ = prepare();
  if (!state_.ok()) trouble(state_).IgnoreError();
}

absl::Status CacheDir::prepare() {
  KILN_ASSIGN_OR_RETURN(path_, absolute_path(path_));
  return make_folder(path_);
}

std::string CacheDir::artifact_folder(const CompileKey& key) const {
  return absl::StrFormat("%s/v1/%s", path_, to_hex(key).substr(0, 2));
}
std::string CacheDir::artifact_path(const CompileKey& key) const {
  return absl::StrFormat("%s/%s.kiln", artifact_folder(key), to_hex(key));
}
std::string CacheDir::quarantine_path(const CompileKey& key) const {
  return absl::StrFormat("%s/quarantine/%s.kiln", path_, to_hex(key));
}
std::string CacheDir::lease_path(const CompileKey& key) const {
  return absl::StrFormat("%s/leases/%s.lease", path_, to_hex(key));
}

absl::Status CacheDir::make_folder(const std::string& folder) const {
  const absl::Status there = check_folder(folder);
  if (!absl::IsNotFound(there)) return there;
  KILN_RETURN_IF_ERROR(make_dirs(fs_, folder));
  return check_folder(folder);
}

absl::Status CacheDir::check_folder(const std::string& folder) const {
  // The root too, each time: what lies in a folder that others can write is not safe whatever its
  // own mode is.
  KILN_ASSIGN_OR_RETURN(const FileInfo root, fs_.stat(path_));
  KILN_RETURN_IF_ERROR(check(root, FileType::directory, path_));
  // And what is between, "v1" of "v1/ab".
  for (std::size_t slash = path_.size(); slash < folder.size();) {
    slash = folder.find('/', slash + 1);
    if (slash == std::string::npos) slash = folder.size();
    const std::string part = folder.substr(0, slash);
    KILN_ASSIGN_OR_RETURN(const FileInfo info, fs_.stat(part));
    KILN_RETURN_IF_ERROR(check(info, FileType::directory, part));
  }
  return absl::OkStatus();
}

absl::Status CacheDir::check_file(const FileInfo& info, const std::string& path) const {
  return check(info, FileType::regular, path);
}

absl::Status CacheDir::trouble(const absl::Status& status) const {
  if (status.ok()) return status;
  ++errors_;
  const std::string kind =
      absl::StrFormat("cache/%s/%d/%d", path_, static_cast<int>(status.code()), errno_of(status));
  log_once(LogLevel::warning, kind,
           absl::StrFormat("cache folder %s: %s; going on without it (said once for this kind)",
                           path_, message_of(status)));
  return strict_ ? status : absl::OkStatus();
}

}  // namespace kiln::cache
