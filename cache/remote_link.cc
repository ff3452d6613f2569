#include "cache/remote_link.h"

#include <kiln/status.h>

#include "base/clock.h"
#include "base/log.h"

#include <absl/strings/str_format.h>

#include <unistd.h>
#include <utility>

namespace kiln::cache {
namespace {

constexpr std::size_t kMostMissing = 4096;

}  // namespace

absl::StatusOr<std::shared_ptr<RemoteLink>> RemoteLink::make(const RemoteOptions& options) {
  KILN_ASSIGN_OR_RETURN(const CurlFunctions* const curl, load_curl());
  KILN_ASSIGN_OR_RETURN(const RemoteAddress address, parse_remote_address(*curl, options));
  std::unique_ptr<RemoteClient> client = address.is_redis()
                                             ? make_redis_client(*curl, address, options)
                                             : make_http_client(*curl, address, options);
  return std::shared_ptr<RemoteLink>(new RemoteLink(options, address.text(), std::move(client)));
}

RemoteLink::RemoteLink(const RemoteOptions& options, std::string address,
                       std::unique_ptr<RemoteClient> client)
    : options_(options),
      address_(std::move(address)),
      client_(std::move(client)),
      pid_(::getpid()),
      breaker_(options.breaker) {}

bool RemoteLink::in_child() const { return ::getpid() != pid_; }

Breaker::Permit RemoteLink::permit_now() {
  const Breaker::Permit permit = in_child() ? Breaker::Permit::none : breaker_.ask(steady_now());
  if (permit == Breaker::Permit::none) ++skipped_;
  return permit;
}

void RemoteLink::report(Breaker::Permit permit, const absl::Status& status) {
  // A value beyond the limit comes from a store that works.
  const bool worked = status.ok() || absl::IsResourceExhausted(status);
  const bool opened = breaker_.report(permit, worked, steady_now());
  if (worked) return;
  ++errors_;
  log_once(LogLevel::warning,
           absl::StrFormat("cache/remote/%s/%d", address_, static_cast<int>(status.code())),
           absl::StrFormat("remote cache %s: %s; the process goes on without it where it fails",
                           address_, message_of(status)));
  if (!opened) return;
  log_once(LogLevel::warning, "cache/remote/open/" + address_,
           absl::StrFormat("remote cache %s is left alone for a while after %d failures in a row",
                           address_, options_.breaker.failures));
}

void RemoteLink::note_damage(const absl::Status& why) {
  ++damaged;
  log_once(LogLevel::warning, "cache/remote/damaged/" + address_,
           absl::StrFormat("remote cache %s: a value is not used: %s", address_, message_of(why)));
}

void RemoteLink::remember_missing(const CompileKey& key) {
  const absl::Time now = steady_now();
  MutexLock lock(mutex_);
  if (missing_until_.size() >= kMostMissing) missing_until_.clear();
  missing_until_[key] = now + options_.remember_missing;
}

void RemoteLink::forget_missing(const CompileKey& key) {
  MutexLock lock(mutex_);
  missing_until_.erase(key);
}

bool RemoteLink::is_missing(const CompileKey& key) {
  MutexLock lock(mutex_);
  const auto found = missing_until_.find(key);
  if (found == missing_until_.end()) return false;
  if (steady_now() < found->second) return true;
  missing_until_.erase(found);
  return false;
}

RemoteInfo RemoteLink::info() const {
  RemoteInfo out{.address = address_, .is_left_alone = breaker_.is_open()};
  out.stats.misses = misses;
  out.stats.stored = stored;
  out.stats.errors = errors_;
  out.stats.damaged = damaged;
  out.stats.skipped = skipped_;
  out.stats.opened = breaker_.opened();
  out.stats.lease_waits = lease_waits;
  return out;
}

}  // namespace kiln::cache
