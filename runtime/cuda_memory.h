#ifndef KILN_RUNTIME_CUDA_MEMORY_H_
#define KILN_RUNTIME_CUDA_MEMORY_H_

#include <kiln/status.h>

#include "runtime/cuda_context.h"

#include <cstddef>
#include <cstdint>

namespace kiln {

// Memory and copies of one device. All take 0 bytes: an allocation of 0 bytes is null, and the rest
// does nothing. The work is ordered in `stream`. Thread-safe.

// From the device's default pool, which is left as the process set it up; from cuMemAlloc, at once
// and for all streams, where the device has no pools. Errors: ResourceExhausted with the bytes
// wanted, free and in all.
absl::StatusOr<void*> allocate_cuda(const CudaDriver& driver, const CudaContext& context,
                                    CUstream stream, std::size_t bytes);
absl::Status free_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                       void* data);

// Host memory must stay as it is until the stream has come past the copy.
absl::Status copy_to_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                          void* device, const void* host, std::size_t bytes);
absl::Status copy_from_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                            void* host, const void* device, std::size_t bytes);
absl::Status copy_on_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                          void* to, const void* from, std::size_t bytes);
absl::Status fill_cuda(const CudaDriver& driver, const CudaContext& context, CUstream stream,
                       void* device, std::uint8_t value, std::size_t bytes);

}  // namespace kiln

#endif  // KILN_RUNTIME_CUDA_MEMORY_H_
