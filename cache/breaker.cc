#include "cache/breaker.h"

#include <algorithm>

namespace kiln::cache {

Breaker::Permit Breaker::ask(absl::Time now) {
  MutexLock lock(mutex_);
  if (!open_) return Permit::request;
  if (probing_ || now < until_) return Permit::none;
  probing_ = true;
  return Permit::probe;
}

bool Breaker::report(Permit permit, bool worked, absl::Time now) {
  MutexLock lock(mutex_);
  if (permit == Permit::probe) probing_ = false;
  // What began before it opened says nothing new.
  if (open_ && permit != Permit::probe) return false;
  if (worked) {
    failures_ = 0;
    open_ = false;
    pause_ = rules_.first_pause;
    return false;
  }
  if (open_) {
    pause_ = std::min(pause_ * 2, rules_.longest_pause);
    until_ = now + pause_;
    return false;
  }
  if (++failures_ < rules_.failures) return false;
  open_ = true;
  until_ = now + pause_;
  ++opened_;
  return true;
}

bool Breaker::is_open() const {
  MutexLock lock(mutex_);
  return open_;
}

std::int64_t Breaker::opened() const {
  MutexLock lock(mutex_);
  return opened_;
}

absl::Duration Breaker::pause() const {
  MutexLock lock(mutex_);
  return pause_;
}

}  // namespace kiln::cache
