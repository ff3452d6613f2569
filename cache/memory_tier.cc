#include "cache/memory_tier.h"

#include "base/mutex.h"

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

using Shared = std::shared_ptr<const Artifact>;

std::int64_t bytes_of(const std::vector<KeyField>& fields) {
  std::size_t sum = 0;
  for (const KeyField& field : fields) sum += field.name.size() + field.value.size();
  return static_cast<std::int64_t>(sum);
}

std::int64_t bytes_of(const Artifact& artifact) {
  return static_cast<std::int64_t>(sizeof(Artifact) + artifact.image.size() +
                                   artifact.metadata.size()) +
         bytes_of(artifact.source_fields) + bytes_of(artifact.compiler_fields);
}

class MemoryTier final : public Tier {
 public:
  explicit MemoryTier(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  TierKind kind() const override { return TierKind::memory; }
  const TierCounters& counters() const override { return counters_; }

  absl::StatusOr<Shared> find(const Artifact& wanted) override {
    Shared found;
    {
      MutexLock lock(mutex_);
      const auto it = rows_.find(wanted.key);
      if (it == rows_.end()) return Shared();
      order_.splice(order_.begin(), order_, it->second);
      found = it->second->artifact;
    }
    // Sources are long: they are compared without the lock.
    if (!same_request(*found, wanted)) found.reset();
    return found;
  }

  absl::Status put(const Shared& artifact) override {
    const std::int64_t bytes = bytes_of(*artifact);
    std::list<Row> dropped;  // freed after the lock
    MutexLock lock(mutex_);
    if (const auto it = rows_.find(artifact->key); it != rows_.end()) {
      bytes_ -= it->second->bytes;
      dropped.splice(dropped.begin(), order_, it->second);
      rows_.erase(it);
    }
    order_.push_front({artifact, bytes});
    rows_[artifact->key] = order_.begin();
    bytes_ += bytes;
    ++counters_.stored;
    while (bytes_ > max_bytes_ && order_.size() > 1) {
      const auto last = std::prev(order_.end());
      bytes_ -= last->bytes;
      rows_.erase(last->artifact->key);
      dropped.splice(dropped.begin(), order_, last);
      ++counters_.evicted;
    }
    return absl::OkStatus();
  }

 private:
  struct Row {
    Shared artifact;
    std::int64_t bytes;
  };

  const std::int64_t max_bytes_;
  TierCounters counters_;
  Mutex mutex_;
  std::list<Row> order_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  absl::flat_hash_map<CompileKey, std::list<Row>::iterator, CompileKeyHasher> rows_
      ABSL_GUARDED_BY(mutex_);
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<Tier> make_memory_tier(std::int64_t max_bytes) {
  return std::make_unique<MemoryTier>(max_bytes);
}

}  // namespace kiln::cache
