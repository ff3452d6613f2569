#include "cache/remote_lease.h"

#include <kiln/status.h>

#include "base/file_system.h"
#include "base/process.h"

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <utility>

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
    leases_->add(right_);
  }
  ~HeldRemoteLease() { leases_->release(right_); }
  HeldRemoteLease(const HeldRemoteLease&) = delete;
  HeldRemoteLease& operator=(const HeldRemoteLease&) = delete;

 private:
  const std::shared_ptr<RemoteLeases> leases_;
  const RemoteRight right_;
};

RemoteLeases::~RemoteLeases() {
  if (link_->in_child()) {
    if (thread_.joinable()) thread_.detach();
    return;
  }
  std::thread last;
  {
    MutexLock lock(mutex_);
    held_.clear();
    changed_.notify_all();
    last = std::move(thread_);
  }
  if (last.joinable()) last.join();
}

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

void RemoteLeases::add(const RemoteRight& right) {
  MutexLock lock(mutex_);
  held_.push_back(right);
  if (running_) return;
  // The one before has left its last locked section: this does not wait for anything.
  if (thread_.joinable()) thread_.join();
  try {
    thread_ = std::thread([this] { run(); });
    running_ = true;
  } catch (...) {
    // No thread to be had: the lease ends by itself, and another may build too.
  }
}

void RemoteLeases::release(const RemoteRight& right) {
  if (link_->in_child()) return;  // it is the parent's
  {
    MutexLock lock(mutex_);
    held_.erase(std::remove_if(held_.begin(), held_.end(),
                               [&](const RemoteRight& held) { return held.token == right.token; }),
                held_.end());
    if (held_.empty()) changed_.notify_all();
  }
  link_->with_client([&](RemoteClient& client) { return client.release(right); }).IgnoreError();
}

void RemoteLeases::run() {
  const absl::Duration period = link_->options().lease_life / kBeats;
  absl::Time beat = absl::Now() + period;
  while (true) {
    std::vector<RemoteRight> held;
    {
      MutexLock lock(mutex_);
      while (!held_.empty() && absl::Now() < beat) changed_.wait_for(mutex_, beat - absl::Now());
      if (held_.empty()) {
        running_ = false;
        return;
      }
      held = held_;
    }
    // Outside the lock: the store may be slow.
    link_->with_client([&](RemoteClient& client) { return client.extend(held); }).IgnoreError();
    beat = absl::Now() + period;
  }
}

}  // namespace kiln::cache
