#include "runtime/cuda_memory.h"

#include <absl/strings/str_format.h>

namespace kiln {
namespace {

CUdeviceptr address_of(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

// Runs `call` with the context current; `what` and the size are put into words only when it fails.
template <typename Call>
absl::Status in_context(const CudaDriver& driver, const CudaContext& context, const char* what,
                        std::size_t bytes, Call call) {
  const ScopedContext current(driver, context);
  const CUresult result = current.result() == CUDA_SUCCESS ? call() : current.result();
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return driver.status(result, absl::StrFormat("cuda:%d: %s %d bytes", context.index, what, bytes));
}

// "; 12 of 34 bytes are free", as far as the driver can tell.
std::string free_memory(const CudaDriver& driver, const CudaContext& context) {
  const ScopedContext current(driver, context);
  std::size_t free = 0;
  std::size_t total = 0;
  if (driver.mem_get_info(&free, &total) != CUDA_SUCCESS) return "";
  return absl::StrFormat("; %d of the device's %d bytes are free", free, total);
}

// Memory that is there while a stream captures and after: on the stream itself it would be the
// graph's, and gone outside of it.
CUresult allocate_beside(const CudaDriver& driver, CUdeviceptr* address, std::size_t bytes) {
  CUstream beside = nullptr;
  CUresult result = driver.stream_create(&beside, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = driver.mem_alloc_async(address, bytes, beside);
  if (result == CUDA_SUCCESS) result = driver.stream_synchronize(beside);
  const CUresult destroyed = driver.stream_destroy(beside);
  return result == CUDA_SUCCESS ? destroyed : result;
}

}  // namespace

absl::StatusOr<void*> allocate_cuda(const CudaDriver& driver, const CudaContext& context,
                                    CUstream stream, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  CUdeviceptr address = 0;
  const absl::Status status = in_context(driver, context, "allocating", bytes, [&] {
    const RelaxedCapture relaxed(driver);
    if (!context.has_memory_pools) return driver.mem_alloc(&address, bytes);
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    const CUresult asked = driver.stream_get_capture_info(stream, &state, &id);
    if (asked == CUDA_SUCCESS && state == CU_STREAM_CAPTURE_STATUS_NONE)
      return driver.mem_alloc_async(&address, bytes, stream);
    return allocate_beside(driver, &address, bytes);
  });
  if (absl::IsResourceExhausted(status)) {
    return absl::ResourceExhaustedError(message_of(status) + free_memory(driver, context));
  }
  KILN_RETURN_IF_ERROR(status);
  return reinterpret_cast<void*>(address);
}

absl::Status free_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                       void* data) {
  if (data == nullptr) return absl::OkStatus();
  const CUdeviceptr address = address_of(data);
  const ScopedContext current(driver, context);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS && context.has_memory_pools) {
    result = driver.mem_free_async(address, stream);
  } else if (result == CUDA_SUCCESS) {
    const RelaxedCapture relaxed(driver);
    result = driver.mem_free(address);  // waits for the work that uses it
  }
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return driver.status(result, absl::StrFormat("cuda:%d: freeing %p", context.index, data));
}

absl::Status copy_to_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                          void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return in_context(driver, context, "copying to the device", bytes, [&] {
    return driver.memcpy_htod_async(address_of(device), host, bytes, stream);
  });
}

absl::Status copy_from_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                            void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return in_context(driver, context, "copying to the host", bytes, [&] {
    return driver.memcpy_dtoh_async(host, address_of(device), bytes, stream);
  });
}

absl::Status copy_on_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                          void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return in_context(driver, context, "copying on the device", bytes, [&] {
    return driver.memcpy_dtod_async(address_of(to), address_of(from), bytes, stream);
  });
}

absl::Status fill_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                       void* device, std::uint8_t value, std::size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return in_context(driver, context, "filling", bytes, [&] {
    return driver.memset_d8_async(address_of(device), value, bytes, stream);
  });
}

}  // namespace kiln
