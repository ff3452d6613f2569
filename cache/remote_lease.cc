#include "cache/remote_lease.h"

#include <kiln/status.h>

#include "base/file_system.h"
#include "base/process.h"

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

constexpr absl::Duration kFirstPoll = absl::Milliseconds(2);
constexpr absl::Duration kLastPoll = absl::Milliseconds(50);
// Beats in the life of a lease: two may be missed.
constexpr int kBeats = 4;

}  // namespace

class HeldRemoteLease {
 public:
  HeldRemoteLease(std::shared_ptr<RemoteLeases> leases, RemoteRight right)
      : leases_(std::move(leases)), right_(std::move(right)) {
    leases_->beats_.add(right_);
  }
  ~HeldRemoteLease() { leases_->release(right_); }
  HeldRemoteLease(const HeldRemoteLease&) = delete;
  HeldRemoteLease& operator=(const HeldRemoteLease&) = delete;

 private:
  const std::shared_ptr<RemoteLeases> leases_;
  const RemoteRight right_;
};

RemoteLeases::RemoteLeases(std::shared_ptr<RemoteLink> link)
    : link_(std::move(link)),
      beats_(link_->options().lease_life / kBeats, [link = link_](
                                                       const std::vector<RemoteRight>& held) {
        link->with_client([&](RemoteClient& client) { return client.extend(held); }).IgnoreError();
      }) {}

absl::StatusOr<std::shared_ptr<const void>> RemoteLeases::acquire(const CompileKey& key,
                                                                  absl::Time deadline) {
  using Held = std::shared_ptr<const void>;
  const RemoteRight right{to_hex(key),
                          absl::StrFormat("%s %s", current_process().host, unique_suffix())};
  absl::Duration pause = kFirstPoll;
  for (bool waited = false;; waited = true) {
    const absl::StatusOr<RemoteClient::Claim> claim =
        link_->with_client([&](RemoteClient& client) { return client.claim(right); });
    if (!claim.ok()) return Held();  // counted and warned of; the caller builds
    if (*claim == RemoteClient::Claim::mine) {
      link_->remember_missing(key);  // the store said so just now
      return Held(std::make_shared<const HeldRemoteLease>(shared_from_this(), right));
    }
    if (*claim == RemoteClient::Claim::built) {
      link_->forget_missing(key);
      return Held();
    }
    if (!waited) ++link_->lease_waits;
    const absl::Time now = absl::Now();
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrFormat("cache: the lease of %s in %s must become free before the deadline, got "
                          "none; another machine or process holds it",
                          right.name, link_->address()));
    }
    absl::SleepFor(std::min(pause, deadline - now));
    pause = std::min(pause * 1.5, kLastPoll);
  }
}

void RemoteLeases::release(const RemoteRight& right) {
  if (link_->in_child()) return;  // it is the parent's
  beats_.remove(right);
  link_->with_client([&](RemoteClient& client) { return client.release(right); }).IgnoreError();
}

}  // namespace kiln::cache
