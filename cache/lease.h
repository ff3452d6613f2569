#ifndef KILN_CACHE_LEASE_H_
#define KILN_CACHE_LEASE_H_

#include "base/file_system.h"
#include "base/process.h"
#include "cache/beats.h"
#include "cache/cache_dir.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kiln::cache {

// What a waiter has seen of a lease file: who holds it and when it last changed.
struct LeaseView {
  FileInfo info;
  std::string content;
  std::optional<ProcessId> holder;  // nullopt: the file is not (yet) readable as a lease
};

// Leases as files: created exclusively, holding host, pid, start time and a number of their own,
// kept fresh by a heartbeat. A lease is advice: losing one, or two processes holding one, costs a
// second build and nothing else. Thread-safe.
class LeaseFiles : public std::enable_shared_from_this<LeaseFiles> {
 public:
  LeaseFiles(std::shared_ptr<const CacheDir> dir, absl::Duration lease_wait,
             absl::Duration heartbeat);

  // The file of a lease: whoever keeps the pointer keeps the lease. Null with `is_built`: somebody
  // has built it; null without: there are no leases to be had.
  struct Acquired {
    std::shared_ptr<const void> held;
    bool is_built = false;
  };
  // As Store::lease.
  absl::StatusOr<Acquired> acquire(const CompileKey& key, absl::Time deadline);
  // Removes the file if it still is the one behind `fd`.
  void release(const std::string& path, const std::shared_ptr<const Fd>& fd);

  std::int64_t waits() const { return waits_.load(); }

 private:
  absl::StatusOr<std::shared_ptr<const void>> create(const std::string& path);
  absl::StatusOr<LeaseView> look(const std::string& path);
  bool is_stale(const LeaseView& view, absl::Time seen_since) const;
  void take_away(const std::string& path, const LeaseView& stale);
  bool built_meanwhile(const CompileKey& key, const std::optional<std::uint64_t>& inode_before);
  std::optional<std::uint64_t> artifact_inode(const CompileKey& key);

  const std::shared_ptr<const CacheDir> dir_;
  const absl::Duration lease_wait_;
  // Touches through descriptors: a file that was taken away from its holder is then touched to no
  // effect, and never its successor.
  Beats<std::shared_ptr<const Fd>> beats_;
  std::atomic<std::int64_t> waits_{0};
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_LEASE_H_
