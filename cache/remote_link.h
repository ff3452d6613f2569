#ifndef KILN_CACHE_REMOTE_LINK_H_
#define KILN_CACHE_REMOTE_LINK_H_

#include "base/mutex.h"
#include "cache/artifact.h"
#include "cache/breaker.h"
#include "cache/remote_client.h"

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/clock.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace kiln::cache {

// The way to the remote store, and what this process knows of it: whether it is to be left alone,
// and what it did not have a moment ago. Shared by the tier and the leases. Thread-safe.
class RemoteLink {
 public:
  // Errors: those of load_curl and parse_remote_address. Connects to nothing.
  static absl::StatusOr<std::shared_ptr<RemoteLink>> make(const RemoteOptions& options);

  const RemoteOptions& options() const { return options_; }
  const std::string& address() const { return address_; }
  bool has_rights() const { return client_->has_rights(); }

  // `ask(client)`, unless the store is left alone: then Cancelled, at once. Counts and reports what
  // came of it, and warns once of each kind of trouble.
  template <class Ask>
  auto with_client(Ask ask) -> decltype(ask(std::declval<RemoteClient&>())) {
    const Breaker::Permit permit = permit_now();
    if (permit == Breaker::Permit::none)
      return absl::CancelledError("the remote cache is left alone after failures");
    auto result = ask(*client_);
    report(permit, plain_status(result));
    return result;
  }

  // What the store did not have is not asked for again for a while.
  void remember_missing(const CompileKey& key);
  void forget_missing(const CompileKey& key);
  bool is_missing(const CompileKey& key);

  // Warns once of a value that cannot be used, and counts it.
  void note_damage(const absl::Status& why);

  RemoteInfo info() const;
  // In a forked child the parent's connections, threads and locks are of no use.
  bool in_child() const;

  std::atomic<std::int64_t> misses{0}, stored{0}, damaged{0}, lease_waits{0};

 private:
  RemoteLink(const RemoteOptions& options, std::string address,
             std::unique_ptr<RemoteClient> client);
  static const absl::Status& plain_status(const absl::Status& status) { return status; }
  template <class Value>
  static const absl::Status& plain_status(const absl::StatusOr<Value>& result) {
    return result.status();
  }
  Breaker::Permit permit_now();
  void report(Breaker::Permit permit, const absl::Status& status);

  const RemoteOptions options_;
  const std::string address_;
  const std::unique_ptr<RemoteClient> client_;
  const std::int64_t pid_;
  Breaker breaker_;
  std::atomic<std::int64_t> errors_{0}, skipped_{0};
  Mutex mutex_;
  absl::flat_hash_map<CompileKey, absl::Time, CompileKeyHasher> missing_until_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_REMOTE_LINK_H_
