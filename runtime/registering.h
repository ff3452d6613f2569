#ifndef KILN_RUNTIME_REGISTERING_H_
#define KILN_RUNTIME_REGISTERING_H_

#include "runtime/runtime_impl.h"

#include <absl/status/status.h>

namespace kiln::internal {

// Everything in `staged` that would clash with what is registered or with itself, or names an op
// that nobody registered; found before anything is changed. AlreadyExists, NotFound or
// InvalidArgument, all with ErrorKind::backend_error.
absl::Status check_staged(const Runtime::Impl& impl, const Registry::Contents& staged)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl.mutex);

// The registry of the plugin that this thread is opening; null when it opens none. The process-wide
// register_* functions fill it, so that what a plugin registers by them (from a static constructor,
// say) is dropped with the rest when it fails.
Registry* staged_here();
class StagingScope {
 public:
  explicit StagingScope(Registry& registry);
  StagingScope(const StagingScope&) = delete;
  StagingScope& operator=(const StagingScope&) = delete;
  ~StagingScope();

 private:
  Registry* const before_;
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_REGISTERING_H_
