#ifndef KILN_RUNTIME_CUDA_MEASURE_H_
#define KILN_RUNTIME_CUDA_MEASURE_H_

#include "runtime/cuda_context.h"
#include "runtime/cuda_driver.h"

#include <absl/status/statusor.h>

#include <cstddef>
#include <functional>

namespace kiln {

// Mean device seconds of one `body` on `stream`: recorded as a graph once and replayed, between
// events, so that what the host takes to enqueue is left out. With `flush_bytes`, so many bytes are
// written before each replay, outside its time. FailedPrecondition when the stream cannot be
// captured (the default stream); an error of `body` as it is.
absl::StatusOr<double> measure_cuda(const CudaDriver& driver, const CudaContext& context,
                                    CUstream stream, const std::function<absl::Status()>& body,
                                    int repeats, std::size_t flush_bytes);

}  // namespace kiln

#endif  // KILN_RUNTIME_CUDA_MEASURE_H_
