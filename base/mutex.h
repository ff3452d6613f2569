#ifndef KILN_BASE_MUTEX_H_
#define KILN_BASE_MUTEX_H_

#include <absl/base/thread_annotations.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace kiln {

// std::mutex with clang's thread-safety annotations. Not absl::Mutex: the distribution's library is
// built without ThreadSanitizer, which cannot see what it synchronises and reports every access
// that it guards.
class ABSL_LOCKABLE Mutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a mutex for a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition of what a Mutex guards. The caller holds the mutex and looks again after each wait,
// which may also end for no reason.
class CondVar {
 public:
  void wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { condition_.wait(mutex); }
  // At most `timeout` from now.
  void wait_for(Mutex& mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    condition_.wait_for(mutex, absl::ToChronoNanoseconds(timeout));
  }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

// Something that happens once, and that many threads may wait for.
class Notification {
 public:
  void notify() {
    MutexLock lock(mutex_);
    happened_ = true;
    condition_.notify_all();
  }
  void wait() {
    MutexLock lock(mutex_);
    while (!happened_) condition_.wait(mutex_);
  }
  // False when it has not happened by `deadline`.
  bool wait_until(absl::Time deadline) {
    MutexLock lock(mutex_);
    while (!happened_) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      condition_.wait_for(mutex_, left < absl::Hours(1) ? left : absl::Hours(1));
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar condition_;
  bool happened_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln

#endif  // KILN_BASE_MUTEX_H_
