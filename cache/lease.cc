#include "cache/lease.h"

#include <kiln/status.h>

#include "base/clock.h"
#include "base/hash128.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

namespace kiln::cache {
namespace {

constexpr std::int64_t kMaxLeaseBytes = 4096;
constexpr absl::Duration kFirstPoll = absl::Milliseconds(1);
constexpr absl::Duration kLastPoll = absl::Milliseconds(50);

std::string lease_text() {
  const ProcessId me = current_process();
  // The last line makes every lease another text, also two of one process.
  return absl::StrFormat("kiln-lease 1\n%s\n%d\n%d\n%s\n", me.host, me.pid, me.start,
                         unique_suffix());
}

std::optional<ProcessId> parse_lease(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ProcessId out;
  if (lines.size() != 6 || lines[0] != "kiln-lease 1" || !lines[5].empty()) return std::nullopt;
  if (!absl::SimpleAtoi(lines[2], &out.pid) || !absl::SimpleAtoi(lines[3], &out.start))
    return std::nullopt;
  out.host = lines[1];
  return out;
}

bool same_file(const FileInfo& a, const FileInfo& b) {
  return a.inode == b.inode && a.device == b.device;
}

bool same_view(const LeaseView& a, const LeaseView& b) {
  return same_file(a.info, b.info) && a.info.modified == b.info.modified && a.content == b.content;
}

}  // namespace

// The file of a lease; removed with the last pointer to this.
class HeldLease {
 public:
  HeldLease(std::shared_ptr<LeaseFiles> files, std::string path, std::shared_ptr<const Fd> fd)
      : files_(std::move(files)), path_(std::move(path)), fd_(std::move(fd)), pid_(::getpid()) {}
  ~HeldLease() {
    // A forked child has a copy of this object, but the lease is its parent's.
    if (pid_ == ::getpid()) files_->release(path_, fd_);
  }
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

 private:
  const std::shared_ptr<LeaseFiles> files_;
  const std::string path_;
  const std::shared_ptr<const Fd> fd_;
  const pid_t pid_;
};

LeaseFiles::LeaseFiles(std::shared_ptr<const CacheDir> dir, absl::Duration lease_wait,
                       absl::Duration heartbeat)
    : dir_(std::move(dir)),
      lease_wait_(lease_wait),
      beats_(heartbeat, [fs = &dir_->fs()](const auto& held) {
        // A touch that fails is a missed beat.
        for (const std::shared_ptr<const Fd>& fd : held) fs->touch(*fd).IgnoreError();
      }) {}

absl::StatusOr<LeaseFiles::Acquired> LeaseFiles::acquire(const CompileKey& key,
                                                         absl::Time deadline) {
  const std::string path = dir_->lease_path(key);
  const auto without = [this](const absl::Status& why) -> absl::StatusOr<Acquired> {
    KILN_RETURN_IF_ERROR(dir_->trouble(why));
    return Acquired();
  };
  if (!dir_->state().ok()) return without(dir_->state());
  if (const absl::Status made = dir_->make_folder(dir_->lease_folder()); !made.ok())
    return without(made);

  const std::optional<std::uint64_t> inode_before = artifact_inode(key);
  std::optional<LeaseView> seen;
  absl::Time seen_since;
  absl::Duration pause = kFirstPoll;
  for (bool waited = false;; waited = true) {
    if (waited && built_meanwhile(key, inode_before)) return Acquired{.is_built = true};
    absl::StatusOr<std::shared_ptr<const void>> mine = create(path);
    if (mine.ok()) return Acquired{.held = *std::move(mine)};
    if (!absl::IsAlreadyExists(mine.status())) return without(mine.status());
    if (!waited) ++waits_;

    absl::StatusOr<LeaseView> view = look(path);
    if (!view.ok() && !absl::IsNotFound(view.status())) return without(view.status());
    if (view.ok()) {
      if (!seen || !same_view(*seen, *view)) {
        seen = *std::move(view);
        seen_since = steady_now();
      }
      if (is_stale(*seen, seen_since)) {
        take_away(path, *seen);
        seen.reset();
        continue;
      }
    }
    const absl::Time now = absl::Now();
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrFormat("cache: the lease of %s must become free before the deadline, got none; "
                          "process %d holds it",
                          to_hex(key), seen && seen->holder ? seen->holder->pid : -1));
    }
    absl::SleepFor(std::min(pause, deadline - now));
    pause = std::min(pause * 1.5, kLastPoll);
  }
}

absl::StatusOr<std::shared_ptr<const void>> LeaseFiles::create(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(Fd fd, dir_->create_file(path));
  if (const absl::Status written = write_all(dir_->fs(), fd, lease_text()); !written.ok()) {
    dir_->fs().unlink(path).IgnoreError();
    return written;
  }
  const auto shared = std::make_shared<const Fd>(std::move(fd));
  beats_.add(shared);
  return std::shared_ptr<const void>(
      std::make_shared<const HeldLease>(shared_from_this(), path, shared));
}

void LeaseFiles::release(const std::string& path, const std::shared_ptr<const Fd>& fd) {
  beats_.remove(fd);
  const absl::StatusOr<FileInfo> mine = dir_->fs().stat(*fd);
  const absl::StatusOr<FileInfo> there = dir_->fs().stat(path);
  if (mine.ok() && there.ok() && same_file(*mine, *there)) dir_->fs().unlink(path).IgnoreError();
}

absl::StatusOr<LeaseView> LeaseFiles::look(const std::string& path) {
  LeaseView view;
  KILN_ASSIGN_OR_RETURN(const Fd fd, dir_->fs().open_read(path));
  KILN_ASSIGN_OR_RETURN(view.content, dir_->read_file(fd, path, kMaxLeaseBytes, view.info));
  view.holder = parse_lease(view.content);
  return view;
}

bool LeaseFiles::is_stale(const LeaseView& view, absl::Time seen_since) const {
  if (view.holder && is_gone(*view.holder)) return true;
  // Silence is measured by this process's own clock from when it saw the last beat. A file that was
  // old long before need not be watched as well.
  return steady_now() - seen_since >= lease_wait_ ||
         absl::Now() - view.info.modified >= lease_wait_ + kClockSkew;
}

void LeaseFiles::take_away(const std::string& path, const LeaseView& stale) {
  // Whoever makes the claim's file may remove this one stale lease, and nobody else: a waiter whose
  // verdict is old finds another lease below and leaves it alone. A claimant that died leaves a
  // claim that is taken away like a lease.
  const std::string claim = absl::StrFormat("%s.%s", path, to_hex(hash128(stale.content)));
  const absl::StatusOr<Fd> fd = dir_->create_file(claim);
  if (absl::IsAlreadyExists(fd.status())) {
    const absl::StatusOr<LeaseView> other = look(claim);
    if (other.ok() && is_stale(*other, steady_now())) take_away(claim, *other);
    return;
  }
  if (!fd.ok()) return;
  const bool claimed = write_all(dir_->fs(), *fd, lease_text()).ok();
  const absl::StatusOr<LeaseView> now = look(path);
  if (claimed && now.ok() && same_view(*now, stale)) dir_->fs().unlink(path).IgnoreError();
  dir_->fs().unlink(claim).IgnoreError();
}

std::optional<std::uint64_t> LeaseFiles::artifact_inode(const CompileKey& key) {
  const absl::StatusOr<FileInfo> info = dir_->fs().stat(dir_->artifact_path(key));
  if (!info.ok()) return std::nullopt;
  return info->inode;
}

bool LeaseFiles::built_meanwhile(const CompileKey& key,
                                 const std::optional<std::uint64_t>& inode_before) {
  const std::optional<std::uint64_t> now = artifact_inode(key);
  return now && now != inode_before;
}

}  // namespace kiln::cache
