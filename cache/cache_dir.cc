#include "cache/cache_dir.h"

#include <kiln/status.h>

#include "base/log.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

constexpr std::uint32_t kWritableByOthers = 0022;
constexpr std::uint32_t kWritableByAll = 0002;
constexpr std::uint32_t kSharedFile = 0660;
constexpr std::uint32_t kSharedFolder = 02770;  // what is made below keeps the group

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

bool in_group(std::uint32_t group) {
  if (group == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

absl::Status check_trusted(const FileInfo& info, FileType want, const std::string& path,
                           std::optional<std::uint32_t> group) {
  if (info.type != want) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "cache: %s must be %s, got %s; it is not used", path, name_of(want), name_of(info.type)));
  }
  const bool by_group = group == info.group;
  if (info.owner != ::geteuid() && info.owner != 0 && !by_group) {
    return absl::PermissionDeniedError(
        absl::StrFormat("cache: %s must belong to user %d or root, got user %d; it is not used",
                        path, ::geteuid(), info.owner));
  }
  if ((info.mode & (by_group ? kWritableByAll : kWritableByOthers)) != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "cache: %s must not be writable by group or others, got mode %04o; it is not used", path,
        info.mode));
  }
  return absl::OkStatus();
}

CacheDir::CacheDir(FileSystem& fs, std::string path, FolderRules rules)
    : fs_(fs), path_(std::move(path)), rules_(rules) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  state_ = prepare();
  if (!state_.ok() && rules_.create) trouble(state_).IgnoreError();
}

absl::Status CacheDir::prepare() {
  KILN_ASSIGN_OR_RETURN(path_, absolute_path(path_));
  if (rules_.group_shared) {
    if (rules_.create) KILN_RETURN_IF_ERROR(make_dirs(fs_, path_));
    KILN_ASSIGN_OR_RETURN(const FileInfo root, fs_.stat(path_));
    if (!in_group(root.group)) {
      return absl::PermissionDeniedError(
          absl::StrFormat("cache: %s is shared by its group %d, which must be one of this "
                          "process's, got none; it is not used",
                          path_, root.group));
    }
    group_ = root.group;
  }
  return rules_.create ? make_folder(path_) : check_folder(path_);
}

absl::Status CacheDir::check(const FileInfo& info, FileType want, const std::string& path) const {
  return check_trusted(info, want, path, group_);
}

absl::StatusOr<Fd> CacheDir::create_file(const std::string& path) const {
  KILN_ASSIGN_OR_RETURN(Fd fd, fs_.create(path));
  if (group_) KILN_RETURN_IF_ERROR(fs_.set_mode(fd, kSharedFile));
  return fd;
}

absl::StatusOr<std::string> CacheDir::read_file(const Fd& fd, const std::string& path,
                                                std::int64_t max_bytes, FileInfo& info) const {
  KILN_ASSIGN_OR_RETURN(info, fs_.stat(fd));
  KILN_RETURN_IF_ERROR(check_file(info, path));
  return read_all(fs_, fd, max_bytes);
}

absl::Status CacheDir::write_file(const std::string& folder, const std::string& name,
                                  std::string_view bytes) const {
  KILN_RETURN_IF_ERROR(make_folder(folder));
  const std::string temp = absl::StrFormat("%s/tmp.%s", folder, unique_suffix());
  absl::Status status = write_synced(temp, bytes);
  if (status.ok()) status = fs_.rename(temp, absl::StrFormat("%s/%s", folder, name));
  if (status.ok()) return fs_.sync_dir(folder);
  fs_.unlink(temp).IgnoreError();
  return status;
}

absl::Status CacheDir::write_synced(const std::string& path, std::string_view bytes) const {
  KILN_ASSIGN_OR_RETURN(const Fd fd, create_file(path));
  KILN_RETURN_IF_ERROR(write_all(fs_, fd, bytes));
  return fs_.sync(fd);
}

absl::Status CacheDir::make_shared_dirs(const std::string& folder) const {
  for (std::size_t slash = path_.size(); slash < folder.size();) {
    slash = folder.find('/', slash + 1);
    if (slash == std::string::npos) slash = folder.size();
    const std::string part = folder.substr(0, slash);
    const absl::Status made = fs_.make_dir(part);
    if (absl::IsAlreadyExists(made)) continue;
    KILN_RETURN_IF_ERROR(made);
    KILN_ASSIGN_OR_RETURN(const Fd fd, fs_.open_read(part));
    KILN_RETURN_IF_ERROR(fs_.set_mode(fd, kSharedFolder));
  }
  return absl::OkStatus();
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
  KILN_RETURN_IF_ERROR(make_dirs(fs_, group_ ? path_ : folder));
  if (group_) KILN_RETURN_IF_ERROR(make_shared_dirs(folder));
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
  return rules_.strict ? status : absl::OkStatus();
}

}  // namespace kiln::cache
