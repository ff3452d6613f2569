#include "cache/lease.h"

#include <algorithm>
#include <thread>

namespace kiln::cache {

Heartbeat::~Heartbeat() {
  std::thread last;
  {
    MutexLock lock(mutex_);
    held_.clear();
    changed_.notify_all();
    last = std::move(thread_);
  }
  if (last.joinable()) last.join();
}

void Heartbeat::add(const Fd* fd) {
  MutexLock lock(mutex_);
  held_.push_back(fd);
  if (running_) return;
  // The one before has left its last locked section: this does not wait for anything.
  if (thread_.joinable()) thread_.join();
  try {
    thread_ = std::thread([this] { run(); });
    running_ = true;
  } catch (...) {
    // No thread to be had: the lease goes without a heartbeat, and others wait at most lease_wait
    // for it.
  }
}

void Heartbeat::remove(const Fd* fd) {
  MutexLock lock(mutex_);
  held_.erase(std::remove(held_.begin(), held_.end(), fd), held_.end());
  if (held_.empty()) changed_.notify_all();
}

void Heartbeat::run() {
  MutexLock lock(mutex_);
  while (true) {
    if (!held_.empty()) changed_.wait_for(mutex_, period_);
    if (held_.empty()) break;
    // Under the lock, so that no descriptor is closed meanwhile. A touch that fails is a missed
    // beat.
    for (const Fd* fd : held_) fs_.touch(*fd).IgnoreError();
  }
  running_ = false;
}

}  // namespace kiln::cache
