#include "cache/disk_tier.h"

#include <kiln/status.h>

#include "base/log.h"
#include "cache/garbage.h"

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <errno.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

using Shared = std::shared_ptr<const Artifact>;

// An image may have 1 GiB; sources, metadata and what zstd adds fit into the rest.
constexpr std::int64_t kMaxFileBytes = (1ll << 30) + (256ll << 20);
// Over NFS a file that another host replaces while it is read goes stale; a second look finds the
// new one.
constexpr int kStaleRetries = 3;
// How exact the stamp of last use is: a hit writes to the file system only this often.
constexpr absl::Duration kStampEvery = absl::Hours(1);
// The folder is measured after this part of its limit was written.
constexpr std::int64_t kMeasureEvery = 32;

absl::StatusOr<std::string> read_file(const CacheDir& dir, const CompileKey& key, FileInfo& info) {
  const std::string path = dir.artifact_path(key);
  KILN_RETURN_IF_ERROR(dir.check_folder(dir.artifact_folder(key)));
  KILN_ASSIGN_OR_RETURN(const Fd fd, dir.fs().open_read(path));
  KILN_ASSIGN_OR_RETURN(std::string bytes, dir.read_file(fd, path, kMaxFileBytes, info));
  // A stamp that cannot be set, on a read-only folder, costs nothing but its place in the order.
  const absl::Duration age = absl::Now() - info.modified;
  if (dir.is_writable() && (age > kStampEvery || age < -kClockSkew))
    dir.fs().touch(fd).IgnoreError();
  return bytes;
}

class DiskTier final : public Tier {
 public:
  DiskTier(std::shared_ptr<const CacheDir> dir, std::int64_t max_bytes)
      : dir_(std::move(dir)), max_bytes_(max_bytes), unmeasured_(max_bytes) {}

  TierKind kind() const override { return TierKind::disk; }
  const TierCounters& counters() const override { return counters_; }

  absl::StatusOr<Shared> find(const Artifact& wanted) override {
    if (!dir_->state().ok()) return failed_find(dir_->state());
    FileInfo info;
    absl::StatusOr<LoadedFile> loaded = load_artifact(*dir_, wanted.key, &info);
    if (absl::IsNotFound(loaded.status())) return Shared();
    if (absl::IsDataLoss(loaded.status()) || absl::IsFailedPrecondition(loaded.status())) {
      KILN_RETURN_IF_ERROR(set_aside(wanted.key, info, loaded.status()));
      return Shared();
    }
    if (!loaded.ok()) return failed_find(loaded.status());
    counters_.bytes_read += loaded->bytes;
    if (!same_request(loaded->artifact, wanted)) return Shared();
    return with_fields_of(wanted, std::move(loaded->artifact));
  }

  absl::StatusOr<Shared> find_by_source(const Artifact& wanted, bool named_only) override {
    if (named_only) return Shared();
    if (!dir_->state().ok()) return failed_find(dir_->state());
    absl::StatusOr<Shared> found = find_newest(*dir_, wanted, {});
    return found.ok() ? found : failed_find(found.status());
  }

  bool may_have_source(const Artifact& wanted) override {
    return dir_->state().ok() && cache::may_have_source(*dir_, wanted);
  }

  absl::Status put(const Shared& artifact) override {
    if (!dir_->state().ok()) return dir_->trouble(dir_->state());
    const absl::StatusOr<std::int64_t> written = write(*artifact);
    if (!written.ok()) return dir_->trouble(written.status());
    ++counters_.stored;
    keep_limit(*written);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Shared> failed_find(const absl::Status& status) {
    KILN_RETURN_IF_ERROR(dir_->trouble(status));
    return Shared();
  }

  absl::Status set_aside(const CompileKey& key, const FileInfo& read, const absl::Status& why) {
    const std::string path = dir_->artifact_path(key);
    ++counters_.quarantined;
    log_once(LogLevel::warning, "cache/damaged/" + path,
             absl::StrFormat("cache: %s is set aside and will be built again: %s", path,
                             message_of(why)));
    return dir_->trouble(set_artifact_aside(*dir_, key, read));
  }

  // Bytes written.
  absl::StatusOr<std::int64_t> write(const Artifact& artifact) {
    const std::string bytes = serialize(artifact);
    if (static_cast<std::int64_t>(bytes.size()) > kMaxFileBytes) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("cache: an artifact's file must have at most %d bytes, got %d",
                          kMaxFileBytes, bytes.size()));
    }
    KILN_RETURN_IF_ERROR(dir_->write_file(dir_->artifact_folder(artifact.key),
                                          to_hex(artifact.key) + ".kiln", bytes));
    counters_.bytes_written += static_cast<std::int64_t>(bytes.size());
    return static_cast<std::int64_t>(bytes.size());
  }

  // The first write of a process measures, then every one that makes up a good part of the limit.
  void keep_limit(std::int64_t written) {
    if (max_bytes_ <= 0) return;
    if (unmeasured_.fetch_add(written) + written < max_bytes_ / kMeasureEvery) return;
    unmeasured_ = 0;
    const absl::StatusOr<GarbageReport> report = collect_garbage(*dir_, {.max_bytes = max_bytes_});
    if (report.ok()) counters_.evicted += report->evicted;
  }

  const std::shared_ptr<const CacheDir> dir_;
  const std::int64_t max_bytes_;
  std::atomic<std::int64_t> unmeasured_;  // bytes since the folder was last measured
  TierCounters counters_;
};

}  // namespace

absl::StatusOr<LoadedFile> load_artifact(const CacheDir& dir, const CompileKey& key,
                                         FileInfo* info) {
  LoadedFile out;
  absl::StatusOr<std::string> bytes = read_file(dir, key, out.info);
  for (int i = 1; i < kStaleRetries && errno_of(bytes.status()) == ESTALE; ++i)
    bytes = read_file(dir, key, out.info);
  if (info != nullptr) *info = out.info;
  if (!bytes.ok()) return bytes.status();
  out.bytes = static_cast<std::int64_t>(bytes->size());
  KILN_ASSIGN_OR_RETURN(out.artifact, parse_artifact(*bytes));
  if (out.artifact.key != key) {
    return absl::DataLossError(
        absl::StrFormat("artifact: key must be the file's name, got %s", to_hex(out.artifact.key)));
  }
  return out;
}

absl::Status set_artifact_aside(const CacheDir& dir, const CompileKey& key, const FileInfo& read) {
  const std::string path = dir.artifact_path(key);
  // A writer may have replaced it.
  const absl::StatusOr<FileInfo> now = dir.fs().stat(path);
  if (!now.ok() || now->inode != read.inode || now->device != read.device) return absl::OkStatus();
  absl::Status moved = dir.make_folder(dir.quarantine_folder());
  if (moved.ok()) moved = dir.fs().rename(path, dir.quarantine_path(key));
  // Another process that read the same file may have moved it first.
  return absl::IsNotFound(moved) ? absl::OkStatus() : moved;
}

absl::StatusOr<Shared> find_newest(const CacheDir& dir, const Artifact& wanted,
                                   const std::vector<CompileKey>& only) {
  struct Candidate {
    absl::Time modified;
    CompileKey key;
  };
  const absl::StatusOr<std::vector<std::string>> names =
      dir.fs().list_dir(dir.artifact_folder(wanted.key));
  if (absl::IsNotFound(names.status())) return Shared();
  KILN_RETURN_IF_ERROR(names.status());
  std::vector<Candidate> candidates;
  for (const std::string& name : *names) {
    const std::optional<CompileKey> key = key_of_file(name);
    if (!key || key->source != wanted.key.source) continue;
    if (!only.empty() && std::find(only.begin(), only.end(), *key) == only.end()) continue;
    const absl::StatusOr<FileInfo> info = dir.fs().stat(dir.artifact_path(*key));
    if (info.ok()) candidates.push_back({info->modified, *key});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(b.modified, b.key) < std::pair(a.modified, a.key);
  });
  for (const Candidate& candidate : candidates) {
    absl::StatusOr<LoadedFile> loaded = load_artifact(dir, candidate.key);
    if (loaded.ok() && same_source(loaded->artifact, wanted))
      return std::make_shared<const Artifact>(std::move(loaded->artifact));
  }
  return Shared();
}

bool may_have_source(const CacheDir& dir, const Artifact& wanted) {
  const absl::StatusOr<std::vector<std::string>> names =
      dir.fs().list_dir(dir.artifact_folder(wanted.key));
  if (!names.ok()) return !absl::IsNotFound(names.status());
  return std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    const std::optional<CompileKey> key = key_of_file(name);
    return key && key->source == wanted.key.source;
  });
}

std::unique_ptr<Tier> make_disk_tier(std::shared_ptr<const CacheDir> dir, std::int64_t max_bytes) {
  return std::make_unique<DiskTier>(std::move(dir), max_bytes);
}

}  // namespace kiln::cache
