#ifndef KILN_CACHE_BEATS_H_
#define KILN_CACHE_BEATS_H_

#include "base/mutex.h"

#include <absl/base/thread_annotations.h>
#include <absl/time/time.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::cache {

// Says again and again that this process lives, for what it holds, from one thread that there is
// only while it holds anything. Thread-safe.
template <class Held>
class Beats {
 public:
  // `beat` gets all that is held, and at times what was let go a moment ago. No lock is held.
  Beats(absl::Duration period, std::function<void(const std::vector<Held>&)> beat)
      : period_(period), beat_(std::move(beat)) {}

  ~Beats() {
    // A forked child has the object and not the thread, for which what it waits on must not wait.
    if (pid_ != ::getpid()) {
      if (thread_.joinable()) thread_.detach();
      (void)changed_.release();
      return;
    }
    std::thread last;
    {
      MutexLock lock(mutex_);
      held_.clear();
      changed_->notify_all();
      last = std::move(thread_);
    }
    if (last.joinable()) last.join();
  }

  void add(Held held) {
    MutexLock lock(mutex_);
    held_.push_back(std::move(held));
    if (running_) return;
    // The one before has left its last locked section: this does not wait for anything.
    if (thread_.joinable()) thread_.join();
    try {
      thread_ = std::thread([this] { run(); });
      running_ = true;
    } catch (...) {
      // No thread to be had: others will believe us gone after a while.
    }
  }

  void remove(const Held& held) {
    MutexLock lock(mutex_);
    held_.erase(std::remove(held_.begin(), held_.end(), held), held_.end());
    if (held_.empty()) changed_->notify_all();
  }

 private:
  void run() {
    while (true) {
      std::vector<Held> held;
      {
        MutexLock lock(mutex_);
        if (!held_.empty()) changed_->wait_for(mutex_, period_);
        if (held_.empty()) {
          running_ = false;
          return;
        }
        held = held_;
      }
      beat_(held);
    }
  }

  const absl::Duration period_;
  const std::function<void(const std::vector<Held>&)> beat_;
  const pid_t pid_ = ::getpid();
  Mutex mutex_;
  std::unique_ptr<CondVar> changed_ = std::make_unique<CondVar>();  // nothing is held any more
  std::vector<Held> held_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // false: `thread_` is about to end or has ended
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_BEATS_H_
