#ifndef KILN_CACHE_TIER_H_
#define KILN_CACHE_TIER_H_

#include "cache/artifact.h"
#include "cache/store.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace kiln::cache {

// What happened in one tier; written without a lock, read as a snapshot that need not be of one
// moment.
struct TierCounters {
  std::atomic<std::int64_t> stored{0};
  std::atomic<std::int64_t> quarantined{0};
  std::atomic<std::int64_t> evicted{0};
  std::atomic<std::int64_t> errors{0};
  std::atomic<std::int64_t> bytes_read{0};
  std::atomic<std::int64_t> bytes_written{0};
};

// One place artifacts are kept. A store asks its tiers in order and lets a hit fill those before
// it. Thread-safe. Trouble of the place itself is counted and, unless the store is strict, is no
// error of a call.
class Tier {
 public:
  virtual ~Tier() = default;

  virtual TierKind kind() const = 0;

  // The artifact with the key and all fields of `wanted`, or null. Damaged, foreign or untrusted
  // ones count as absent.
  virtual absl::StatusOr<std::shared_ptr<const Artifact>> find(const Artifact& wanted) = 0;

  // The artifact with the source fields of `wanted`, whatever compiled it, or null: where no
  // compiler is, or none may run. With `named_only` just what the place itself names for this
  // source; else the newest it has.
  virtual absl::StatusOr<std::shared_ptr<const Artifact>> find_by_source(const Artifact& wanted,
                                                                         bool named_only) = 0;

  // May there be an artifact with the source key of `wanted`, whatever compiled it? Reads none and
  // asks nobody; where that does not tell, true.
  virtual bool may_have_source(const Artifact& wanted) = 0;

  // A read-only tier answers ok and does nothing.
  virtual absl::Status put(const std::shared_ptr<const Artifact>& artifact) = 0;

  virtual const TierCounters& counters() const = 0;
};

// Same key and same fields, value by value: equal hashes alone are not believed.
inline bool same_source(const Artifact& a, const Artifact& b) {
  return a.key.source == b.key.source && a.source_fields == b.source_fields;
}
inline bool same_request(const Artifact& a, const Artifact& b) {
  return a.key == b.key && a.source_fields == b.source_fields &&
         a.compiler_fields == b.compiler_fields;
}

// `loaded`, the same request as `wanted`, with the texts of that one: they are shared with those
// who ask again, whose hit then compares no bytes of them.
inline std::shared_ptr<const Artifact> with_fields_of(const Artifact& wanted, Artifact loaded) {
  loaded.source_fields = wanted.source_fields;
  loaded.compiler_fields = wanted.compiler_fields;
  return std::make_shared<const Artifact>(std::move(loaded));
}

}  // namespace kiln::cache

#endif  // KILN_CACHE_TIER_H_
