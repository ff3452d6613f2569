#include "runtime/modules.h"

#include <algorithm>
#include <utility>

namespace kiln::internal {

std::vector<std::shared_ptr<Modules::Slot>> Modules::take_idle() {
  std::vector<std::pair<std::int64_t, Slots::iterator>> idle;
  for (auto at = slots_.begin(); at != slots_.end(); ++at) {
    // Held by the table alone, so nobody is loading it or about to take its image.
    if (at->second.use_count() != 1) continue;
    MutexLock lock(at->second->mutex);
    if (at->second->image.use_count() <= 1) idle.emplace_back(at->second->asked_for, at);
  }
  std::vector<std::shared_ptr<Slot>> taken;
  if (idle.size() > max_idle_) {
    std::sort(idle.begin(), idle.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    idle.resize(idle.size() - max_idle_);
    for (const auto& [number, at] : idle) {
      taken.push_back(std::move(at->second));
      slots_.erase(at);
    }
  }
  // As many again before the next look: that keeps what looking costs a load constant.
  sweep_at_ = std::max(max_idle_, 2 * slots_.size());
  return taken;
}

absl::StatusOr<std::shared_ptr<LoadedImage>> Modules::load(
    DeviceSupport& support, const Device& device, const cache::Artifact& artifact,
    const std::vector<std::string>& kernels) {
  std::shared_ptr<Slot> slot;
  std::vector<std::shared_ptr<Slot>> idle;  // unloaded without the lock
  {
    MutexLock lock(mutex_);
    if (max_idle_ > 0 && slots_.size() > sweep_at_) idle = take_idle();
    std::shared_ptr<Slot>& known = slots_[{to_string(device), cache::to_hex(artifact.key)}];
    if (known == nullptr) known = std::make_shared<Slot>();
    known->asked_for = ++asked_;
    slot = known;
  }
  unloads_.fetch_add(static_cast<std::int64_t>(idle.size()), std::memory_order_relaxed);
  idle.clear();
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
