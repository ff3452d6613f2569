#ifndef KILN_RUNTIME_MODULES_H_
#define KILN_RUNTIME_MODULES_H_

#include <kiln/device_support.h>

#include "base/mutex.h"
#include "cache/artifact.h"

#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln::internal {

// Images loaded by this process: each artifact once a device, shared by all who ask. Thread-safe.
// An image stays loaded as long as somebody holds it, and then until the process ends: work that
// uses it may still be in flight.
class Modules {
 public:
  // Loads `artifact` on `device` unless it is there. One load at a time for one image; others do
  // not wait for it.
  absl::StatusOr<std::shared_ptr<LoadedImage>> load(DeviceSupport& support, const Device& device,
                                                    const cache::Artifact& artifact,
                                                    const std::vector<std::string>& kernels);
  // Whether the artifact of that key is loaded on `device`.
  bool has(const Device& device, const cache::CompileKey& key);
  std::int64_t loads() const { return loads_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    Mutex mutex;
    std::shared_ptr<LoadedImage> image ABSL_GUARDED_BY(mutex);
  };
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Slot>> slots_
      ABSL_GUARDED_BY(mutex_);
  std::atomic<std::int64_t> loads_{0};
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_MODULES_H_
