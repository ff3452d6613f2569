#ifndef KILN_RUNTIME_CUDA_LAUNCH_H_
#define KILN_RUNTIME_CUDA_LAUNCH_H_

#include <kiln/device_support.h>
#include <kiln/status.h>

#include "runtime/cuda_context.h"

namespace kiln {

// Enqueues one launch. Every hit of every op comes through here: no lock, and memory is allocated
// only for an error's message. Attributes are on the stack and only those that `shape` asks for are
// passed. Thread-safe.
absl::Status launch_cuda(const CudaDriver& driver, const CudaContext& context, CUfunction function,
                         CUstream stream, const LaunchShape& shape, void** args);

}  // namespace kiln

#endif  // KILN_RUNTIME_CUDA_LAUNCH_H_
