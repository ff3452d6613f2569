#ifndef KILN_RUNTIME_CUDA_MODULE_H_
#define KILN_RUNTIME_CUDA_MODULE_H_

#include <kiln/device_support.h>
#include <kiln/status.h>

#include "runtime/cuda_context.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

// Loads `image` (kind "cubin" or "ptx") for the device of `context` and finds `kernels` in it.
// Loading is complete when this returns: no launch loads anything, so the first may be captured in
// a graph. A capture going on in another thread is not disturbed.
//
// The image is unloaded when the result is destroyed: its owner must know that no launch of it is
// in flight and that no graph that holds one will run again. At process exit it is left to the
// driver instead.
//
// Errors: InvalidArgument for another kind or a damaged image; FailedPrecondition for an image of
// another arch; NotFound for a kernel that is not in it; ResourceExhausted.
absl::StatusOr<std::unique_ptr<LoadedImage>> load_cuda_image(const CudaDriver& driver,
                                                             const CudaContext& context,
                                                             std::string_view kind,
                                                             std::string_view image,
                                                             std::span<const std::string> kernels);

// Lets `function` be launched with up to `smem_bytes` of dynamic shared memory and, on sm_90 and
// later, in clusters of more than the portable 8 blocks. Never lowers what an earlier call allowed.
// Errors: ResourceExhausted with the bytes wanted and the limit.
absl::Status prepare_cuda_function(const CudaDriver& driver, const CudaContext& context,
                                   CUfunction function, std::uint32_t smem_bytes);

}  // namespace kiln

#endif  // KILN_RUNTIME_CUDA_MODULE_H_
