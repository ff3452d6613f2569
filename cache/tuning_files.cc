#include "cache/tuning_files.h"

#include <kiln/status.h>

#include "base/log.h"
#include "cache/layer_tier.h"
#include "cache/remote_records.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln::cache {
namespace {

constexpr std::int64_t kMaxRecordBytes = 16 << 20;
constexpr std::string_view kSuffix = ".json";

std::string path_in(const CacheDir& dir, const std::string& name) {
  return dir.tuning_folder() + "/" + name + std::string(kSuffix);
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() < 200 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

absl::Status check_name(const std::string& name) {
  if (is_name(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "a tuning record's name must be letters, digits, '_' and '-': got '%s'", name));
}

std::map<std::string, std::string> records_of(const Pack& pack, const std::string& path) {
  std::map<std::string, std::string> records;
  for (std::size_t i = 0; i < pack.tuning_size(); ++i) {
    auto record = pack.tuning(i);
    if (record.ok())
      records.insert(*std::move(record));
    else
      log_once(LogLevel::warning, "tuning/" + path,
               absl::StrFormat("cache layer %s: %s", path, message_of(record.status())));
  }
  return records;
}

}  // namespace

TuningFiles::TuningFiles(const TuningFilesOptions& options, FileSystem& fs)
    : remote_(options.remote) {
  if (!options.dir.empty()) {
    dir_ = std::make_unique<CacheDir>(
        fs, options.dir,
        FolderRules{.strict = options.strict, .group_shared = options.group_shared});
  }
  for (const std::string& path : options.layers) {
    // A layer that cannot be used is warned of by the store, which opens it too.
    const absl::StatusOr<FileInfo> info = fs.stat(path);
    if (!info.ok()) continue;
    if (info->type == FileType::directory) {
      auto folder = std::make_unique<CacheDir>(fs, path, FolderRules{.create = false});
      if (!folder->state().ok()) continue;
      layers_.emplace_back(true, folders_.size());
      folders_.push_back(std::move(folder));
    } else if (const auto pack = open_pack_file(fs, path, options.trusted_keys); pack.ok()) {
      layers_.emplace_back(false, packs_.size());
      packs_.push_back(records_of(**pack, path));
    }
  }
}

std::string TuningFiles::path_of(const std::string& name) const {
  return dir_ == nullptr ? "" : path_in(*dir_, name);
}

absl::StatusOr<std::optional<std::string>> TuningFiles::read(const CacheDir& dir,
                                                             const std::string& name) {
  const std::string path = path_in(dir, name);
  const auto trusted = [&]() -> absl::StatusOr<std::string> {
    KILN_RETURN_IF_ERROR(dir.check_folder(dir.tuning_folder()));
    KILN_ASSIGN_OR_RETURN(const Fd fd, dir.fs().open_read(path));
    FileInfo info;
    return dir.read_file(fd, path, kMaxRecordBytes, info);
  };
  absl::StatusOr<std::string> text = trusted();
  if (text.ok()) return std::optional<std::string>(*std::move(text));
  if (!absl::IsNotFound(text.status())) KILN_RETURN_IF_ERROR(dir.trouble(text.status()));
  return std::optional<std::string>();
}

absl::StatusOr<std::optional<std::string>> TuningFiles::find(const std::string& name,
                                                             const Usable& usable,
                                                             bool ask_remote) const {
  KILN_RETURN_IF_ERROR(check_name(name));
  const auto is_usable = [&](const std::optional<std::string>& text) {
    return text && (usable == nullptr || usable(*text));
  };
  std::optional<std::string> text;
  if (has_folder()) {
    KILN_ASSIGN_OR_RETURN(text, read(*dir_, name));
  }
  if (is_usable(text)) return text;
  for (const auto& [is_folder, at] : layers_) {
    if (is_folder) {
      KILN_ASSIGN_OR_RETURN(text, read(*folders_[at], name));
    } else {
      const auto record = packs_[at].find(name);
      text = record == packs_[at].end() ? std::nullopt : std::optional(record->second);
    }
    if (is_usable(text)) return text;
  }
  if (remote_ == nullptr || !ask_remote) return std::optional<std::string>();
  KILN_ASSIGN_OR_RETURN(text, remote_->find(name));
  if (!is_usable(text)) return std::optional<std::string>();
  KILN_RETURN_IF_ERROR(keep(name, *text));
  return text;
}

absl::Status TuningFiles::put(const std::string& name, std::string_view text) const {
  KILN_RETURN_IF_ERROR(check_name(name));
  absl::Status status = keep(name, text);
  if (remote_ != nullptr) status.Update(remote_->put(name, text));
  return status;
}

absl::Status TuningFiles::keep(const std::string& name, std::string_view text) const {
  if (dir_ == nullptr) return absl::OkStatus();
  return dir_->trouble(dir_->state().ok() ? dir_->write_file(dir_->tuning_folder(),
                                                             name + std::string(kSuffix), text)
                                          : dir_->state());
}

absl::StatusOr<bool> TuningFiles::remove(const std::string& name) const {
  KILN_RETURN_IF_ERROR(check_name(name));
  if (!has_folder()) return false;
  const absl::Status status = dir_->fs().unlink(path_in(*dir_, name));
  if (absl::IsNotFound(status)) return false;
  KILN_RETURN_IF_ERROR(status);
  return true;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> TuningFiles::list() const {
  std::vector<std::pair<std::string, std::string>> out;
  if (!has_folder()) return out;
  const auto names = dir_->fs().list_dir(dir_->tuning_folder());
  if (absl::IsNotFound(names.status())) return out;
  KILN_RETURN_IF_ERROR(names.status());
  for (const std::string& file : *names) {
    if (file.size() <= kSuffix.size() || !file.ends_with(kSuffix)) continue;
    const std::string name = file.substr(0, file.size() - kSuffix.size());
    if (!is_name(name)) continue;
    KILN_ASSIGN_OR_RETURN(std::optional<std::string> text, read(*dir_, name));
    if (text) out.emplace_back(name, *std::move(text));
  }
  return out;
}

}  // namespace kiln::cache
