#ifndef KILN_CACHE_WRITE_BEHIND_H_
#define KILN_CACHE_WRITE_BEHIND_H_

#include "base/mutex.h"
#include "cache/tier.h"

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace kiln::cache {

// Puts into `inner` from a thread of its own, so that no caller waits for a disk. What waits to be
// written is found as if it were there, and the lease of its key is kept until it is. The thread
// lives only while there is work. A full queue, or a forked child, makes `put` write by itself. At
// the end of the process what waits is written, for a few seconds at most; a process that is killed
// loses it, and the next one builds it again.
class WriteBehind : public std::enable_shared_from_this<WriteBehind> {
 public:
  // With `drop_when_full` what finds no room is given up instead: for a place that may be slow.
  static std::shared_ptr<WriteBehind> make(std::unique_ptr<Tier> inner,
                                           bool drop_when_full = false);

  Tier& inner() { return *inner_; }
  // The artifact if it waits under this key, else null.
  std::shared_ptr<const Artifact> waiting(const CompileKey& key);
  absl::Status put(const std::shared_ptr<const Artifact>& artifact);
  // Keeps `lease` until what waits under `key` is written; lets go of it at once if nothing does.
  void keep(const CompileKey& key, std::shared_ptr<const void> lease);
  // Waits until all that waits is written. False: it was not by then.
  bool flush(absl::Duration wait);
  std::int64_t dropped() const { return dropped_.load(); }

 private:
  struct Job {
    std::shared_ptr<const Artifact> artifact;
    std::vector<std::shared_ptr<const void>> leases;
  };
  WriteBehind(std::unique_ptr<Tier> inner, bool drop_when_full);
  bool in_child() const;
  bool enqueue(const std::shared_ptr<const Artifact>& artifact);
  void run();

  const std::unique_ptr<Tier> inner_;
  const bool drop_when_full_;
  const std::int64_t pid_;
  std::atomic<std::int64_t> dropped_{0};
  Mutex mutex_;
  CondVar idle_;
  std::deque<CompileKey> order_ ABSL_GUARDED_BY(mutex_);
  // What is being written stays in here until it is.
  absl::flat_hash_map<CompileKey, Job, CompileKeyHasher> jobs_ ABSL_GUARDED_BY(mutex_);
  std::size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
};

// As a tier of a store. Its destructor flushes.
std::unique_ptr<Tier> make_write_behind_tier(std::shared_ptr<WriteBehind> writer);

}  // namespace kiln::cache

#endif  // KILN_CACHE_WRITE_BEHIND_H_
