#include "runtime/cuda_context.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln {

absl::StatusOr<std::unique_ptr<CudaContexts>> CudaContexts::open() {
  std::unique_ptr<CudaContexts> contexts(new CudaContexts);
  KILN_ASSIGN_OR_RETURN(contexts->driver_, CudaDriver::open());
  if (!contexts->driver_->has_devices()) return contexts;
  const CudaDriver& driver = *contexts->driver_;
  int count = 0;
  KILN_RETURN_IF_ERROR(driver.status(driver.device_get_count(&count), "cuda: counting devices"));
  contexts->device_count_ = std::min(count, 255);
  return contexts;
}

absl::Status CudaContexts::check(int index) const {
  if (index >= 0 && index < device_count_) return absl::OkStatus();
  return absl::NotFoundError(absl::StrFormat(
      "cuda: the device must be one of the %d that are here: got cuda:%d", device_count_, index));
}

absl::StatusOr<const CudaContext*> CudaContexts::get(int index) {
  KILN_RETURN_IF_ERROR(check(index));
  if (const CudaContext* context = find(index)) return context;
  MutexLock lock(mutex_);
  if (const CudaContext* context = find(index)) return context;
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<const CudaContext> made, retain(index));
  const CudaContext* context =
      made.release();  // kept for the life of the process, as the context itself
  contexts_[static_cast<std::size_t>(index)].store(context, std::memory_order_release);
  return context;
}

absl::StatusOr<CUdevice> CudaContexts::device(int index) const {
  CUdevice device = 0;
  KILN_RETURN_IF_ERROR(driver_->status(driver_->device_get(&device, index),
                                       absl::StrFormat("cuda:%d: finding the device", index)));
  return device;
}

absl::StatusOr<int> CudaContexts::attribute(int index, CUdevice_attribute which) const {
  KILN_ASSIGN_OR_RETURN(const CUdevice device, this->device(index));
  int value = 0;
  KILN_RETURN_IF_ERROR(driver_->status(
      driver_->device_get_attribute(&value, which, device),
      absl::StrFormat("cuda:%d: reading device attribute %d", index, static_cast<int>(which))));
  return value;
}

absl::StatusOr<std::unique_ptr<const CudaContext>> CudaContexts::retain(int index) const {
  auto context = std::make_unique<CudaContext>();
  context->index = index;
  KILN_ASSIGN_OR_RETURN(const int major,
                        attribute(index, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  KILN_ASSIGN_OR_RETURN(const int minor,
                        attribute(index, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  context->arch = 10 * major + minor;
  KILN_ASSIGN_OR_RETURN(context->smem_budget,
                        attribute(index, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  KILN_ASSIGN_OR_RETURN(const int pools,
                        attribute(index, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED));
  context->has_memory_pools = pools != 0;

  KILN_ASSIGN_OR_RETURN(const CUdevice device, this->device(index));
  const RelaxedCapture relaxed(*driver_);
  KILN_RETURN_IF_ERROR(
      driver_->status(driver_->primary_ctx_retain(&context->handle, device),
                      absl::StrFormat("cuda:%d: retaining the primary context", index)));
  return context;
}

}  // namespace kiln
