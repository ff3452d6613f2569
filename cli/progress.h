#ifndef KILN_CLI_PROGRESS_H_
#define KILN_CLI_PROGRESS_H_

#include "base/mutex.h"

#include <absl/time/time.h>

#include <cstddef>
#include <list>
#include <string>
#include <string_view>

namespace kiln::cli {

// Whether what goes to standard error may be coloured: it is a terminal that can, and NO_COLOR is
// not set (no-color.org).
bool is_colour_wanted();

// How far work of `total` steps is, on standard error: on a terminal one line that is written over
// (done and total, rate, time left, what is being worked on), elsewhere one line a step.
// Thread-safe.
class Progress {
 public:
  explicit Progress(std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(const std::string& what);
  // What of it is done now, for a terminal.
  void step(const std::string& what, const std::string& detail);
  // `outcome` is a word or two: "built", "in disk", "failed".
  void end(const std::string& what, std::string_view outcome, bool is_good);

 private:
  void draw(bool now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string line() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t total_;
  const bool is_terminal_;
  const absl::Time start_;
  Mutex mutex_;
  std::size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  struct Work {
    std::string what, detail;
  };
  std::list<Work>::iterator find(const std::string& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Work> at_work_ ABSL_GUARDED_BY(mutex_);
  absl::Time drawn_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace kiln::cli

#endif  // KILN_CLI_PROGRESS_H_
