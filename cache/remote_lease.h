#ifndef KILN_CACHE_REMOTE_LEASE_H_
#define KILN_CACHE_REMOTE_LEASE_H_

#include "cache/beats.h"
#include "cache/remote_link.h"

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <memory>

namespace kiln::cache {

// Leases in the remote store, so that one machine of many builds a key. They end by themselves
// unless their holder beats. Like those on disk they are advice: losing one costs a second build.
// Thread-safe.
class RemoteLeases : public std::enable_shared_from_this<RemoteLeases> {
 public:
  explicit RemoteLeases(std::shared_ptr<RemoteLink> link);

  // The right to build `key`, given back with the last pointer to it; null when somebody has built
  // it, or where there are no rights to be had. Waits for a holder that lives, at most until
  // `deadline` (then DeadlineExceeded); for one that is gone, at most the life of a lease.
  absl::StatusOr<std::shared_ptr<const void>> acquire(const CompileKey& key, absl::Time deadline);

 private:
  friend class HeldRemoteLease;
  void release(const RemoteRight& right);

  const std::shared_ptr<RemoteLink> link_;
  Beats<RemoteRight> beats_;
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_LEASE_H_
