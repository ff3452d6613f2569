#include "cache/garbage.h"

#include <kiln/status.h>

#include <absl/time/clock.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

constexpr std::string_view kSuffix = ".kiln";

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// "v1": the artifacts of one format version.
bool is_version_folder(std::string_view name) {
  return name.size() > 1 && name[0] == 'v' &&
         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// Names in a folder that may not be there. One that others can write, or a link, is as if it were
// not: nothing is removed where it leads.
absl::StatusOr<std::vector<std::string>> names_in(const CacheDir& dir, const std::string& folder) {
  if (const absl::Status trusted = dir.check_folder(folder); absl::IsPermissionDenied(trusted)) {
    KILN_RETURN_IF_ERROR(dir.trouble(trusted));
    return std::vector<std::string>();
  }
  absl::StatusOr<std::vector<std::string>> names = dir.fs().list_dir(folder);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

// DIR/v*/ab
absl::StatusOr<std::vector<std::string>> artifact_folders(const CacheDir& dir) {
  std::vector<std::string> out;
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(dir, dir.path()));
  for (const std::string& name : names) {
    if (!is_version_folder(name)) continue;
    const std::string version = dir.path() + "/" + name;
    KILN_ASSIGN_OR_RETURN(const std::vector<std::string> shards, names_in(dir, version));
    for (const std::string& shard : shards) {
      if (shard.size() == 2) out.push_back(version + "/" + shard);
    }
  }
  return out;
}

// Removes files of `folder` that `wanted` picks and whose last change is older than `age`.
template <typename Pick>
std::int64_t sweep(const CacheDir& dir, const std::string& folder, absl::Duration age, Pick pick) {
  const absl::StatusOr<std::vector<std::string>> names = names_in(dir, folder);
  if (!names.ok()) return 0;
  std::int64_t removed = 0;
  for (const std::string& name : *names) {
    if (!pick(name)) continue;
    const std::string path = folder + "/" + name;
    const absl::StatusOr<FileInfo> info = dir.fs().stat(path);
    if (!info.ok() || info->type != FileType::regular || absl::Now() - info->modified < age)
      continue;
    if (dir.fs().unlink(path).ok()) ++removed;
  }
  return removed;
}

// When the file was last used. A stamp from beyond what clocks of hosts may differ by says nothing,
// and must not keep a file until its time has come.
absl::Time last_use(const FileInfo& info, absl::Time now) {
  return info.modified > now + kClockSkew ? absl::InfinitePast() : info.modified;
}

// Whether the file is gone now, by us or by another that collects.
bool evict(const CacheDir& dir, const ArtifactFile& file, bool& by_us) {
  const absl::StatusOr<FileInfo> now = dir.fs().stat(file.path);
  if (absl::IsNotFound(now.status())) return true;
  if (!now.ok() || now->inode != file.info.inode || now->modified != file.info.modified)
    return false;
  const absl::Status removed = dir.fs().unlink(file.path);
  by_us = removed.ok();
  return removed.ok() || absl::IsNotFound(removed);
}

void evict_to_limit(const CacheDir& dir, const GarbageRules& rules, std::vector<ArtifactFile> files,
                    GarbageReport& report) {
  // Every process that collects goes through them in one order, so two of them remove the same
  // ones.
  const absl::Time now = absl::Now();
  std::sort(files.begin(), files.end(), [now](const ArtifactFile& a, const ArtifactFile& b) {
    return std::pair(last_use(a.info, now), a.path) < std::pair(last_use(b.info, now), b.path);
  });
  const std::int64_t goal = rules.max_bytes / 10 * 9;
  for (const ArtifactFile& file : files) {
    if (report.bytes <= goal || now - last_use(file.info, now) < rules.grace) break;
    bool by_us = false;
    if (!evict(dir, file, by_us)) continue;
    report.bytes -= file.info.size;
    --report.files;
    if (!by_us) continue;
    ++report.evicted;
    report.evicted_bytes += file.info.size;
  }
}

}  // namespace

std::optional<CompileKey> key_of_file(std::string_view name) {
  if (name.size() != 64 + kSuffix.size() || name.substr(64) != kSuffix) return std::nullopt;
  return parse_compile_key(name.substr(0, 64));
}

absl::StatusOr<std::vector<ArtifactFile>> list_artifacts(const CacheDir& dir) {
  KILN_RETURN_IF_ERROR(dir.state());
  std::vector<ArtifactFile> out;
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> folders, artifact_folders(dir));
  for (const std::string& folder : folders) {
    KILN_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(dir, folder));
    for (const std::string& name : names) {
      const std::optional<CompileKey> key = key_of_file(name);
      if (!key) continue;
      std::string path = folder + "/" + name;
      absl::StatusOr<FileInfo> info = dir.fs().stat(path);
      if (info.ok()) out.push_back({*key, std::move(path), *std::move(info)});
    }
  }
  return out;
}

absl::StatusOr<GarbageReport> collect_garbage(const CacheDir& dir, const GarbageRules& rules) {
  KILN_ASSIGN_OR_RETURN(std::vector<ArtifactFile> files, list_artifacts(dir));
  GarbageReport report;
  for (const ArtifactFile& file : files) {
    ++report.files;
    report.bytes += file.info.size;
  }
  KILN_ASSIGN_OR_RETURN(std::vector<std::string> folders, artifact_folders(dir));
  folders.push_back(dir.tuning_folder());
  for (const std::string& folder : folders) {
    report.swept += sweep(dir, folder, rules.temp_age,
                          [](const std::string& name) { return starts_with(name, "tmp."); });
  }
  const auto any = [](const std::string&) { return true; };
  report.swept += sweep(dir, dir.lease_folder(), rules.temp_age, any);
  report.swept += sweep(dir, dir.quarantine_folder(), rules.aside_age, any);
  if (rules.max_bytes > 0 && report.bytes > rules.max_bytes)
    evict_to_limit(dir, rules, std::move(files), report);
  return report;
}

absl::StatusOr<std::int64_t> clear_artifacts(const CacheDir& dir) {
  KILN_ASSIGN_OR_RETURN(const std::vector<ArtifactFile> files, list_artifacts(dir));
  std::int64_t removed = 0;
  for (const ArtifactFile& file : files) {
    const absl::Status gone = dir.fs().unlink(file.path);
    if (!gone.ok() && !absl::IsNotFound(gone)) return gone;
    removed += gone.ok();
  }
  sweep(dir, dir.quarantine_folder(), absl::ZeroDuration(),
        [](const std::string&) { return true; });
  return removed;
}

}  // namespace kiln::cache
