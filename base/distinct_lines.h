#ifndef KILN_BASE_DISTINCT_LINES_H_
#define KILN_BASE_DISTINCT_LINES_H_

#include <kiln/export.h>

#include "base/fd.h"
#include "base/hash128.h"
#include "base/mutex.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

namespace kiln {

// A text file of lines that are all different, which threads and processes append to together.
//
// A line is appended by one write() under a lock of the file, after what others have appended has
// been read, so a reader sees whole lines and each once. Half a line at the end, as a crash of the
// machine or a full disk may leave it, is cut off by the next who appends. A holder of the lock
// that was stopped delays others by `kLockPatience`, then they append without it: a line may then
// be there twice. Nothing is synced. Thread-safe.
class KILN_EXPORT DistinctLines {
 public:
  struct Kind {
    std::function<std::string(std::string_view line)> identity;  // what makes two lines the same
    std::function<bool(std::string_view line)> is_whole;  // asked of a last line without an end
  };
  static constexpr int kLockPatienceMs = 200;

  // `max_lines`: what the file holds at most. Errors: those of errno_status.
  static absl::StatusOr<std::unique_ptr<DistinctLines>> open(const std::string& path,
                                                             std::size_t max_lines, Kind kind);

  enum class Added { yes, was_there, file_is_full };
  // REQUIRES: no line break in `line`. Errors: those of errno_status; the file is as it was.
  absl::StatusOr<Added> add(std::string_view line);

 private:
  DistinctLines(std::string path, std::size_t max_lines, Kind kind)
      : path_(std::move(path)), max_lines_(max_lines), kind_(std::move(kind)) {}

  absl::Status open_file() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status follow_path() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What follows the last whole line.
  absl::StatusOr<std::string> read_others() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status append(std::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const std::size_t max_lines_;
  const Kind kind_;
  Mutex mutex_;
  Fd file_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t device_ ABSL_GUARDED_BY(mutex_) = 0, inode_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t read_to_ ABSL_GUARDED_BY(mutex_) = 0;  // the end of the last whole line
  std::unordered_set<Hash128, Hash128Hasher> seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln

#endif  // KILN_BASE_DISTINCT_LINES_H_
