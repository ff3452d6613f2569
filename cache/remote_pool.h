#ifndef KILN_CACHE_REMOTE_POOL_H_
#define KILN_CACHE_REMOTE_POOL_H_

#include "base/mutex.h"

#include <absl/base/thread_annotations.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace kiln::cache {

// Connections that are open and not in use. Thread-safe.
template <class Connection>
class RemotePool {
 public:
  std::optional<Connection> take() {
    MutexLock lock(mutex_);
    if (idle_.empty()) return std::nullopt;
    std::optional<Connection> out(std::move(idle_.back()));
    idle_.pop_back();
    return out;
  }
  void give(Connection connection) {
    MutexLock lock(mutex_);
    if (idle_.size() < kMost) idle_.push_back(std::move(connection));
  }
  void clear() {
    std::vector<Connection> closed;
    MutexLock lock(mutex_);
    closed.swap(idle_);
  }

 private:
  static constexpr std::size_t kMost = 32;
  Mutex mutex_;
  std::vector<Connection> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_POOL_H_
