#ifndef KILN_RUNTIME_MODULES_H_
#define KILN_RUNTIME_MODULES_H_

#include <kiln/device_support.h>

#include "base/mutex.h"
#include "cache/artifact.h"

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln::internal {

// Images loaded by this process: each artifact once a device, shared by all who ask. Thread-safe.
// An image stays loaded as long as somebody holds it; of idle ones, whose last holder has waited
// for their work, `max_idle` stay when they are next counted, which is as the number of images
// doubles.
class Modules {
 public:
  // `max_idle` 0: nothing is unloaded.
  explicit Modules(std::size_t max_idle) : max_idle_(max_idle), sweep_at_(max_idle) {}
  // Loads `artifact` on `device` unless it is there. One load at a time for one image; others do
  // not wait for it.
  absl::StatusOr<std::shared_ptr<LoadedImage>> load(DeviceSupport& support, const Device& device,
                                                    const cache::Artifact& artifact,
                                                    const std::vector<std::string>& kernels);
  // Whether the artifact of that key is loaded on `device`.
  bool has(const Device& device, const cache::CompileKey& key);
  std::int64_t loads() const { return loads_.load(std::memory_order_relaxed); }
  std::int64_t unloads() const { return unloads_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    Mutex mutex;
    std::shared_ptr<LoadedImage> image ABSL_GUARDED_BY(mutex);
    std::int64_t asked_for = 0;  // the number of the last `load`; guarded by `mutex_`
  };
  using Slots = std::map<std::pair<std::string, std::string>, std::shared_ptr<Slot>>;
  // Takes out the idle images beyond the limit, those asked for longest ago first.
  std::vector<std::shared_ptr<Slot>> take_idle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t max_idle_;
  Mutex mutex_;
  Slots slots_ ABSL_GUARDED_BY(mutex_);
  std::size_t sweep_at_ ABSL_GUARDED_BY(mutex_);  // so many slots are worth looking at each
  std::int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<std::int64_t> loads_{0}, unloads_{0};
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_MODULES_H_
