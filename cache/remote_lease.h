#ifndef KILN_CACHE_REMOTE_LEASE_H_
#define KILN_CACHE_REMOTE_LEASE_H_

#include "base/mutex.h"
#include "cache/remote_link.h"

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kiln::cache {

// Leases in the remote store, so that one machine of many builds a key. They end by themselves
// unless their holder beats, from one thread that lives only while any are held. Like those on disk
// they are advice: losing one costs a second build. Thread-safe.
class RemoteLeases : public std::enable_shared_from_this<RemoteLeases> {
 public:
  explicit RemoteLeases(std::shared_ptr<RemoteLink> link) : link_(std::move(link)) {}
  ~RemoteLeases();

  // The right to build `key`, given back with the last pointer to it; null when somebody has built
  // it, or where there are no rights to be had. Waits for a holder that lives, at most until
  // `deadline` (then DeadlineExceeded); for one that is gone, at most the life of a lease.
  absl::StatusOr<std::shared_ptr<const void>> acquire(const CompileKey& key, absl::Time deadline);

 private:
  friend class HeldRemoteLease;
  void add(const RemoteRight& right);
  void release(const RemoteRight& right);
  void run();

  const std::shared_ptr<RemoteLink> link_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<RemoteRight> held_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // false: `thread_` is about to end or has ended
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_LEASE_H_
