#include "runtime/op_scratch.h"

#include "runtime/tune_loading.h"

namespace kiln::internal {

absl::StatusOr<void*> OpScratch::get(const Stream& stream, std::size_t bytes) {
  // A sweep has scratch memory of its own: other threads' calls go on meanwhile.
  const Device device = real_device(stream.device);
  const bool is_sweep = !(device == stream.device);
  KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime_.device_support(device.type));
  Owner owner{stream.device.type.id(), stream.device.index, nullptr, 0};
  if (!is_sweep) {
    owner.stream = stream.handle;
    KILN_ASSIGN_OR_RETURN(owner.capture, support->capture_id(stream));
  }
  MutexLock lock(mutex_);
  Blocks& own = blocks_[owner];
  if (!own.blocks.empty() && own.blocks.back().second >= bytes) return own.blocks.back().first;
  KILN_ASSIGN_OR_RETURN(void* data, support->allocate(Stream{device, stream.handle}, bytes));
  own.device = device;
  own.blocks.emplace_back(data, bytes);
  return data;
}

OpScratch::~OpScratch() {
  MutexLock lock(mutex_);
  for (const auto& [owner, own] : blocks_) {
    const absl::StatusOr<DeviceSupport*> support = runtime_.device_support(own.device.type);
    for (const auto& [data, bytes] : own.blocks) {
      if (support.ok()) (*support)->free(Stream{own.device}, data).IgnoreError();
    }
  }
}

}  // namespace kiln::internal
