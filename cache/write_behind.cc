#include "cache/write_behind.h"

#include "base/clock.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

using Shared = std::shared_ptr<const Artifact>;

// Beyond this a caller writes itself: memory for what waits is bounded.
constexpr std::size_t kMaxJobs = 256;
constexpr std::size_t kMaxBytes = 256u << 20;
// How long an exit may wait for a disk.
constexpr absl::Duration kExitWait = absl::Seconds(5);

// The writers of this process, for its end: a program that returns from main right after its last
// build keeps it.
class LiveWriters {
 public:
  static LiveWriters& instance() {
    static LiveWriters* const writers = new LiveWriters;  // outlives every static object
    return *writers;
  }
  void add(const std::shared_ptr<WriteBehind>& writer) {
    // Once more for each kind of place: what that place's libraries do at the end of the process
    // they asked for before, and it must come after.
    std::call_once(registered_[static_cast<std::size_t>(writer->inner().kind())],
                   [] { std::atexit([] { instance().flush(); }); });
    MutexLock lock(mutex_);
    writers_.erase(std::remove_if(writers_.begin(), writers_.end(),
                                  [](const auto& known) { return known.expired(); }),
                   writers_.end());
    writers_.push_back(writer);
  }

 private:
  void flush() {
    std::vector<std::weak_ptr<WriteBehind>> writers;
    {
      MutexLock lock(mutex_);
      writers = writers_;
    }
    const absl::Time end = steady_now() + kExitWait;
    for (const auto& known : writers) {
      const std::shared_ptr<WriteBehind> writer = known.lock();
      if (writer != nullptr) writer->flush(end - steady_now());
    }
  }

  std::once_flag registered_[4];  // by TierKind
  Mutex mutex_;
  std::vector<std::weak_ptr<WriteBehind>> writers_ ABSL_GUARDED_BY(mutex_);
};

class WriteBehindTier final : public Tier {
 public:
  explicit WriteBehindTier(std::shared_ptr<WriteBehind> writer) : writer_(std::move(writer)) {}
  ~WriteBehindTier() override { writer_->flush(kExitWait); }

  TierKind kind() const override { return writer_->inner().kind(); }
  const TierCounters& counters() const override { return writer_->inner().counters(); }
  absl::StatusOr<Shared> find(const Artifact& wanted) override {
    Shared waiting = writer_->waiting(wanted.key);
    if (waiting != nullptr && same_request(*waiting, wanted)) return waiting;
    return writer_->inner().find(wanted);
  }
  absl::StatusOr<Shared> find_by_source(const Artifact& wanted, bool named_only) override {
    return writer_->inner().find_by_source(wanted, named_only);
  }
  bool may_have_source(const Artifact& wanted) override {
    return writer_->inner().may_have_source(wanted);
  }
  absl::Status put(const Shared& artifact) override { return writer_->put(artifact); }

 private:
  const std::shared_ptr<WriteBehind> writer_;
};

}  // namespace

WriteBehind::WriteBehind(std::unique_ptr<Tier> inner, bool drop_when_full)
    : inner_(std::move(inner)), drop_when_full_(drop_when_full), pid_(::getpid()) {}

std::shared_ptr<WriteBehind> WriteBehind::make(std::unique_ptr<Tier> inner, bool drop_when_full) {
  std::shared_ptr<WriteBehind> writer(new WriteBehind(std::move(inner), drop_when_full));
  LiveWriters::instance().add(writer);
  return writer;
}

// A forked child has what its parent had in the queue, but no thread, and perhaps a lock that
// nobody will open.
bool WriteBehind::in_child() const { return ::getpid() != pid_; }

Shared WriteBehind::waiting(const CompileKey& key) {
  if (in_child()) return nullptr;
  MutexLock lock(mutex_);
  const auto job = jobs_.find(key);
  return job == jobs_.end() ? nullptr : job->second.artifact;
}

bool WriteBehind::enqueue(const Shared& artifact) {
  MutexLock lock(mutex_);
  if (const auto job = jobs_.find(artifact->key); job != jobs_.end()) {
    // Either is right: equal requests make equal images. The one that is being written stays.
    return true;
  }
  if (jobs_.size() >= kMaxJobs || bytes_ + artifact->image.size() > kMaxBytes) return false;
  if (!running_) {
    try {
      std::thread([self = shared_from_this()] { self->run(); }).detach();
    } catch (...) {
      return false;  // no thread to be had
    }
    running_ = true;
  }
  order_.push_back(artifact->key);
  jobs_[artifact->key].artifact = artifact;
  bytes_ += artifact->image.size();
  return true;
}

absl::Status WriteBehind::put(const Shared& artifact) {
  if (!in_child() && enqueue(artifact)) return absl::OkStatus();
  if (!drop_when_full_) return inner_->put(artifact);
  ++dropped_;
  return absl::OkStatus();
}

void WriteBehind::keep(const CompileKey& key, std::shared_ptr<const void> lease) {
  if (in_child()) return;
  MutexLock lock(mutex_);
  const auto job = jobs_.find(key);
  if (job != jobs_.end()) job->second.leases.push_back(std::move(lease));
}

bool WriteBehind::flush(absl::Duration wait) {
  if (in_child()) return true;
  const absl::Time end = steady_now() + wait;
  MutexLock lock(mutex_);
  while (!jobs_.empty() && steady_now() < end) idle_.wait_for(mutex_, end - steady_now());
  return jobs_.empty();
}

void WriteBehind::run() {
  while (true) {
    Shared artifact;
    {
      MutexLock lock(mutex_);
      if (order_.empty()) {
        running_ = false;
        return;
      }
      artifact = jobs_[order_.front()].artifact;
      order_.pop_front();
    }
    // Trouble is counted and warned of by the tier; a caller that must know of it does not write
    // behind.
    inner_->put(artifact).IgnoreError();
    // Releasing a lease is file work too: outside the lock, and before the job counts as done.
    std::vector<std::shared_ptr<const void>> leases;
    do {
      leases.clear();
      MutexLock lock(mutex_);
      const auto job = jobs_.find(artifact->key);
      leases.swap(job->second.leases);
      if (!leases.empty()) continue;
      jobs_.erase(job);
      bytes_ -= artifact->image.size();
      if (jobs_.empty()) idle_.notify_all();
    } while (!leases.empty());
  }
}

std::unique_ptr<Tier> make_write_behind_tier(std::shared_ptr<WriteBehind> writer) {
  return std::make_unique<WriteBehindTier>(std::move(writer));
}

}  // namespace kiln::cache
