#include "cache/memory_tier.h"

#include "base/mutex.h"

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
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

// Hits take the lock of one shard, for a look-up and a copied pointer, and write nothing that other
// shards read. The order of use is kept in ticks that only a put advances: hits between two puts
// are of one age.
class MemoryTier final : public Tier {
 public:
  explicit MemoryTier(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  TierKind kind() const override { return TierKind::memory; }
  const TierCounters& counters() const override { return counters_; }

  absl::StatusOr<Shared> find(const Artifact& wanted) override {
    Shared found;
    {
      Shard& shard = shard_of(wanted.key);
      MutexLock lock(shard.mutex);
      const auto it = shard.rows.find(wanted.key);
      if (it == shard.rows.end()) return Shared();
      it->second.used = tick_.load(std::memory_order_relaxed) + 1;
      found = it->second.artifact;
    }
    // Sources are long: they are compared without the lock.
    if (!same_request(*found, wanted)) found.reset();
    return found;
  }

  // Looks at every row: asked on a miss alone, where nothing may be compiled.
  absl::StatusOr<Shared> find_by_source(const Artifact& wanted, bool named_only) override {
    if (named_only) return Shared();
    for (Shard& shard : shards_) {
      MutexLock lock(shard.mutex);
      for (const auto& [key, row] : shard.rows) {
        if (key.source == wanted.key.source && same_source(*row.artifact, wanted))
          return row.artifact;
      }
    }
    return Shared();
  }

  bool may_have_source(const Artifact& wanted) override {
    Shard& shard = shard_of(wanted.key);
    MutexLock lock(shard.mutex);
    return std::any_of(shard.rows.begin(), shard.rows.end(),
                       [&](const auto& row) { return row.first.source == wanted.key.source; });
  }

  absl::Status put(const Shared& artifact) override {
    const std::int64_t bytes = bytes_of(*artifact);
    std::vector<Shared> dropped;  // freed after the locks
    MutexLock puts(put_mutex_);
    const std::int64_t now = tick_.load(std::memory_order_relaxed) + 2;
    {
      Shard& shard = shard_of(artifact->key);
      MutexLock lock(shard.mutex);
      Row& row = shard.rows[artifact->key];
      bytes_ += bytes - row.bytes;
      dropped.push_back(std::exchange(row.artifact, artifact));
      row.bytes = bytes;
      row.used = now;
    }
    tick_.store(now, std::memory_order_relaxed);
    ++counters_.stored;
    while (bytes_ > max_bytes_ && drop_oldest(artifact->key, dropped)) ++counters_.evicted;
    return absl::OkStatus();
  }

 private:
  struct Row {
    Shared artifact;
    std::int64_t bytes = 0;
    std::int64_t used = 0;
  };
  struct alignas(64) Shard {
    Mutex mutex;
    absl::flat_hash_map<CompileKey, Row, CompileKeyHasher> rows ABSL_GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 64;

  Shard& shard_of(const CompileKey& key) { return shards_[key.source.high % kShards]; }

  // Drops the row that was not used for longest, but never that of `kept`. False: there is no
  // other.
  bool drop_oldest(const CompileKey& kept, std::vector<Shared>& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(put_mutex_) {
    std::int64_t oldest = 0;
    CompileKey victim;
    bool any = false;
    for (Shard& shard : shards_) {
      MutexLock lock(shard.mutex);
      for (const auto& [key, row] : shard.rows) {
        if (key == kept || (any && row.used >= oldest)) continue;
        any = true;
        oldest = row.used;
        victim = key;
      }
    }
    if (!any) return false;
    Shard& shard = shard_of(victim);
    MutexLock lock(shard.mutex);
    const auto row = shard.rows.find(victim);
    bytes_ -= row->second.bytes;
    dropped.push_back(std::move(row->second.artifact));
    shard.rows.erase(row);
    return true;
  }

  const std::int64_t max_bytes_;
  TierCounters counters_;
  std::array<Shard, kShards> shards_;
  Mutex put_mutex_;  // taken before a shard's; only puts remove rows
  std::int64_t bytes_ ABSL_GUARDED_BY(put_mutex_) = 0;
  std::atomic<std::int64_t> tick_{0};
};

}  // namespace

std::unique_ptr<Tier> make_memory_tier(std::int64_t max_bytes) {
  return std::make_unique<MemoryTier>(max_bytes);
}

}  // namespace kiln::cache
