#include "base/distinct_lines.h"

#include <kiln/status.h>

#include "base/file_system.h"

#include <absl/time/clock.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

// The lock of a file for a scope; held or not.
class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) {
    for (int waited_ms = 0; waited_ms <= DistinctLines::kLockPatienceMs; ++waited_ms) {
      held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
      // Another error than "somebody has it": a file system without locks.
      if (held_ || (errno != EWOULDBLOCK && errno != EINTR)) return;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (held_) (void)::flock(fd_, LOCK_UN);
  }
  bool held() const { return held_; }

 private:
  const int fd_;
  bool held_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DistinctLines>> DistinctLines::open(const std::string& path,
                                                                   std::size_t max_lines,
                                                                   Kind kind) {
  std::unique_ptr<DistinctLines> lines(new DistinctLines(path, max_lines, std::move(kind)));
  MutexLock lock(lines->mutex_);
  KILN_RETURN_IF_ERROR(lines->open_file());
  return lines;
}

absl::Status DistinctLines::open_file() {
  Fd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644));
  const int open_error = errno;
  if (!file.valid()) return errno_status(open_error, "open " + path_);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return errno_status(errno, "fstat " + path_);
  if (!S_ISREG(info.st_mode)) return errno_status(EINVAL, "append to " + path_ + ", no plain file");
  file_ = std::move(file);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  read_to_ = 0;
  seen_.clear();
  return absl::OkStatus();
}

// Somebody may have moved the file away, to begin a new one.
absl::Status DistinctLines::follow_path() {
  struct stat info = {};
  const bool is_same =
      ::stat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
  return is_same ? absl::OkStatus() : open_file();
}

absl::StatusOr<std::string> DistinctLines::read_others() {
  struct stat info = {};
  if (::fstat(file_.get(), &info) != 0) return errno_status(errno, "fstat " + path_);
  if (info.st_size < read_to_) {  // emptied by somebody
    read_to_ = 0;
    seen_.clear();
  }
  std::string text(static_cast<std::size_t>(info.st_size - read_to_), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t count = ::pread(file_.get(), text.data() + have, text.size() - have,
                                  static_cast<off_t>(read_to_) + static_cast<off_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status(errno, "read " + path_);
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  text.resize(have);
  std::string_view rest = text;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    if (end > 0) seen_.insert(hash128(kind_.identity(rest.substr(0, end))));
    read_to_ += static_cast<std::int64_t>(end) + 1;
    rest.remove_prefix(end + 1);
  }
  return std::string(rest);
}

absl::Status DistinctLines::append(std::string_view text) {
  ssize_t count = 0;
  do {
    count = ::write(file_.get(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(text.size())) return absl::OkStatus();
  return errno_status(count < 0 ? errno : ENOSPC, "write " + path_);
}

absl::StatusOr<DistinctLines::Added> DistinctLines::add(std::string_view line) {
  const Hash128 hash = hash128(kind_.identity(line));
  MutexLock lock(mutex_);
  if (seen_.contains(hash)) return Added::was_there;
  KILN_RETURN_IF_ERROR(follow_path());
  const FileLock file_lock(file_.get());
  KILN_ASSIGN_OR_RETURN(const std::string rest, read_others());
  if (seen_.contains(hash)) return Added::was_there;
  if (seen_.size() >= max_lines_) return Added::file_is_full;
  // All that append hold the lock, so half a line is what one that is gone has left.
  const bool is_cut = file_lock.held() && !rest.empty() && !kind_.is_whole(rest);
  if (is_cut && ::ftruncate(file_.get(), read_to_) != 0)
    return errno_status(errno, "ftruncate " + path_);
  std::string text = std::string(line) + "\n";
  if (!rest.empty() && !is_cut) text.insert(0, "\n");
  const std::int64_t end = read_to_ + static_cast<std::int64_t>(is_cut ? 0 : rest.size());
  if (absl::Status status = append(text); !status.ok()) {
    if (file_lock.held()) (void)!::ftruncate(file_.get(), end);
    return status;
  }
  seen_.insert(hash);
  if (file_lock.held()) {
    if (!rest.empty() && !is_cut) seen_.insert(hash128(kind_.identity(rest)));
    read_to_ = end + static_cast<std::int64_t>(text.size());
  }
  return Added::yes;
}

}  // namespace kiln
