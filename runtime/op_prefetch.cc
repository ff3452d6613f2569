// How calls of an op may miss, and building what they need before they come.
#include "base/mutex.h"
#include "base/process.h"
#include "runtime/op_core.h"
#include "runtime/runtime_impl.h"

#include <memory>
#include <utility>

namespace kiln::inline v1 {

internal::MissOptions OpCore::miss_options() const {
  const double deadline =
      options_.compile_deadline_seconds.value_or(runtime_.options().compile_deadline_seconds);
  return {.policy = policy(),
          .deadline = deadline > 0 ? absl::Seconds(deadline) : absl::InfiniteDuration()};
}

std::shared_future<absl::Status> OpCore::prefetch(
    const absl::StatusOr<std::vector<KernelCall>>& plan, const Device& device) {
  // Of all kernel calls: the last one that is done keeps the promise.
  struct Progress {
    Mutex mutex;
    std::size_t left ABSL_GUARDED_BY(mutex) = 0;
    absl::Status first ABSL_GUARDED_BY(mutex);
    std::promise<absl::Status> promise;
  };
  auto progress = std::make_shared<Progress>();
  std::shared_future<absl::Status> future = progress->promise.get_future().share();
  absl::Status ready = plan.status();
  if (ready.ok()) ready = check_not_forked(runtime_.impl().owner, type_.signature.op);
  std::vector<internal::Dispatcher*> dispatchers;
  for (std::size_t i = 0; ready.ok() && i < plan->size(); ++i) {
    const absl::StatusOr<internal::Dispatcher*> found = dispatcher((*plan)[i].interface);
    if (found.ok()) dispatchers.push_back(*found);
    ready = found.status();
  }
  if (!ready.ok() || dispatchers.empty()) {
    progress->promise.set_value(ready);
    return future;
  }
  const absl::StatusOr<DeviceSupport*> support = runtime_.device_support(device.type);
  internal::MissOptions options;
  if (policy() == CompilePolicy::forbid) options.policy = CompilePolicy::forbid;
  {
    MutexLock lock(progress->mutex);
    progress->left = dispatchers.size();
  }
  for (std::size_t i = 0; i < dispatchers.size(); ++i) {
    dispatchers[i]->prefetch(support.ok() ? *support : nullptr, (*plan)[i].call.at(Where{device}),
                             options, [progress](const absl::Status& status) {
                               bool last = false;
                               absl::Status first;
                               {
                                 MutexLock lock(progress->mutex);
                                 progress->first.Update(status);
                                 first = progress->first;
                                 last = --progress->left == 0;
                               }
                               if (last) progress->promise.set_value(first);
                             });
  }
  return future;
}

}  // namespace kiln::inline v1
