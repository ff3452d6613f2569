#ifndef KILN_CACHE_BREAKER_H_
#define KILN_CACHE_BREAKER_H_

#include <kiln/export.h>

#include "base/mutex.h"
#include "cache/remote.h"

#include <absl/base/thread_annotations.h>
#include <absl/time/time.h>

#include <cstdint>

namespace kiln::cache {

// A circuit breaker. Closed, everybody may ask; open, nobody; after the pause one probe may, and
// what it meets decides. Thread-safe.
class KILN_EXPORT Breaker {
 public:
  enum class Permit { none, request, probe };

  explicit Breaker(const BreakerRules& rules) : rules_(rules), pause_(rules.first_pause) {}

  // Whoever gets another permit than `none` must report with it.
  Permit ask(absl::Time now);
  // True when this very report opened it.
  bool report(Permit permit, bool worked, absl::Time now);

  bool is_open() const;
  std::int64_t opened() const;   // times it went from closed to open
  absl::Duration pause() const;  // the one in force, or the next

 private:
  const BreakerRules rules_;
  mutable Mutex mutex_;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  bool probing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time until_ ABSL_GUARDED_BY(mutex_);
  absl::Duration pause_ ABSL_GUARDED_BY(mutex_);
  std::int64_t opened_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_BREAKER_H_
