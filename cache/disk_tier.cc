#include "cache/disk_tier.h"

#include <kiln/status.h>

#include "base/log.h"

#include <absl/strings/str_format.h>

#include <cstdint>
#include <errno.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kiln::cache {
namespace {

using Shared = std::shared_ptr<const Artifact>;

// An image may have 1 GiB; sources, metadata and what zstd adds fit into the rest.
constexpr std::int64_t kMaxFileBytes = (1ll << 30) + (256ll << 20);
// Over NFS a file that another host replaces while it is read goes stale; a second look finds the
// new one.
constexpr int kStaleRetries = 3;

struct Loaded {
  std::string bytes;
  FileInfo info;
};

class DiskTier final : public Tier {
 public:
  explicit DiskTier(std::shared_ptr<const CacheDir> dir) : dir_(std::move(dir)) {}

  TierKind kind() const override { return TierKind::disk; }
  const TierCounters& counters() const override { return counters_; }

  absl::StatusOr<Shared> find(const Artifact& wanted) override {
    if (!dir_->state().ok()) return failed_find(dir_->state());
    absl::StatusOr<Loaded> loaded = load(wanted.key);
    for (int i = 1; i < kStaleRetries && errno_of(loaded.status()) == ESTALE; ++i)
      loaded = load(wanted.key);
    if (absl::IsNotFound(loaded.status())) return Shared();
    if (!loaded.ok()) return failed_find(loaded.status());
    counters_.bytes_read += static_cast<std::int64_t>(loaded->bytes.size());

    absl::StatusOr<Artifact> parsed = parse_artifact(loaded->bytes);
    if (parsed.ok() && parsed->key != wanted.key) {
      parsed = absl::DataLossError(
          absl::StrFormat("artifact: key must be the file's name, got %s", to_hex(parsed->key)));
    }
    if (!parsed.ok()) {
      KILN_RETURN_IF_ERROR(set_aside(wanted.key, loaded->info, parsed.status()));
      return Shared();
    }
    if (!same_request(*parsed, wanted)) return Shared();
    return std::make_shared<const Artifact>(*std::move(parsed));
  }

  absl::Status put(const Shared& artifact) override {
    if (!dir_->state().ok()) return dir_->trouble(dir_->state());
    const absl::Status written = write(*artifact);
    if (written.ok()) ++counters_.stored;
    return dir_->trouble(written);
  }

 private:
  absl::StatusOr<Shared> failed_find(const absl::Status& status) {
    KILN_RETURN_IF_ERROR(dir_->trouble(status));
    return Shared();
  }

  absl::StatusOr<Loaded> load(const CompileKey& key) {
    const std::string path = dir_->artifact_path(key);
    KILN_RETURN_IF_ERROR(dir_->check_folder(dir_->artifact_folder(key)));
    KILN_ASSIGN_OR_RETURN(const Fd fd, dir_->fs().open_read(path));
    Loaded out;
    KILN_ASSIGN_OR_RETURN(out.info, dir_->fs().stat(fd));
    KILN_RETURN_IF_ERROR(dir_->check_file(out.info, path));
    KILN_ASSIGN_OR_RETURN(out.bytes, read_all(dir_->fs(), fd, kMaxFileBytes));
    return out;
  }

  // Moves the damaged file away, if its name still means the file that was read: a writer may have
  // replaced it.
  absl::Status set_aside(const CompileKey& key, const FileInfo& read, const absl::Status& why) {
    const std::string path = dir_->artifact_path(key);
    ++counters_.quarantined;
    log_once(LogLevel::warning, "cache/damaged/" + path,
             absl::StrFormat("cache: %s is set aside and will be built again: %s", path,
                             message_of(why)));
    const absl::StatusOr<FileInfo> now = dir_->fs().stat(path);
    if (!now.ok() || now->inode != read.inode || now->device != read.device)
      return absl::OkStatus();
    absl::Status moved = dir_->make_folder(dir_->quarantine_folder());
    if (moved.ok()) moved = dir_->fs().rename(path, dir_->quarantine_path(key));
    // Another process that read the same file may have moved it first.
    return absl::IsNotFound(moved) ? absl::OkStatus() : dir_->trouble(moved);
  }

  absl::Status write(const Artifact& artifact) {
    const std::string bytes = serialize(artifact);
    if (static_cast<std::int64_t>(bytes.size()) > kMaxFileBytes) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("cache: an artifact's file must have at most %d bytes, got %d",
                          kMaxFileBytes, bytes.size()));
    }
    const std::string folder = dir_->artifact_folder(artifact.key);
    KILN_RETURN_IF_ERROR(dir_->make_folder(folder));
    const std::string temp = absl::StrFormat("%s/tmp.%s", folder, unique_suffix());
    absl::Status status = write_synced(temp, bytes);
    if (status.ok()) status = dir_->fs().rename(temp, dir_->artifact_path(artifact.key));
    if (!status.ok()) {
      dir_->fs().unlink(temp).IgnoreError();
      return status;
    }
    counters_.bytes_written += static_cast<std::int64_t>(bytes.size());
    return dir_->fs().sync_dir(folder);
  }

  absl::Status write_synced(const std::string& path, const std::string& bytes) {
    KILN_ASSIGN_OR_RETURN(const Fd fd, dir_->fs().create(path));
    KILN_RETURN_IF_ERROR(write_all(dir_->fs(), fd, bytes));
    return dir_->fs().sync(fd);
  }

  const std::shared_ptr<const CacheDir> dir_;
  TierCounters counters_;
};

}  // namespace

std::unique_ptr<Tier> make_disk_tier(std::shared_ptr<const CacheDir> dir) {
  return std::make_unique<DiskTier>(std::move(dir));
}

}  // namespace kiln::cache
