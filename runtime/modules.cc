#include "runtime/modules.h"

namespace kiln::internal {

absl::StatusOr<std::shared_ptr<LoadedImage>> Modules::load(
    DeviceSupport& support, const Device& device, const cache::Artifact& artifact,
    const std::vector<std::string>& kernels) {
  std::shared_ptr<Slot> slot;
  {
    MutexLock lock(mutex_);
    std::shared_ptr<Slot>& known = slots_[{to_string(device), cache::to_hex(artifact.key)}];
    if (known == nullptr) known = std::make_shared<Slot>();
    slot = known;
  }
  MutexLock lock(slot->mutex);
  if (slot->image == nullptr) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<LoadedImage> image,
                          support.load(device.index, artifact.kind, artifact.image, kernels));
    slot->image = std::move(image);
    loads_.fetch_add(1, std::memory_order_relaxed);
  }
  return slot->image;
}

bool Modules::has(const Device& device, const cache::CompileKey& key) {
  std::shared_ptr<Slot> slot;
  {
    MutexLock lock(mutex_);
    const auto at = slots_.find({to_string(device), cache::to_hex(key)});
    if (at == slots_.end()) return false;
    slot = at->second;
  }
  MutexLock lock(slot->mutex);
  return slot->image != nullptr;
}

}  // namespace kiln::internal
