#include "runtime/cuda_launch.h"

#include <absl/base/optimization.h>
#include <absl/strings/str_format.h>

namespace kiln {
namespace {

ABSL_ATTRIBUTE_NOINLINE absl::Status launch_error(const CudaDriver& driver,
                                                  const CudaContext& context, CUresult result,
                                                  const LaunchShape& s) {
  return driver.status(
      result,
      absl::StrFormat("cuda:%d: launching with grid [%d, %d, %d], block [%d, %d, %d], cluster "
                      "[%d, %d, %d] and %d bytes of dynamic shared memory",
                      context.index, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1],
                      s.block[2], s.cluster[0], s.cluster[1], s.cluster[2], s.smem_bytes));
}

}  // namespace

absl::Status launch_cuda(const CudaDriver& driver, const CudaContext& context, CUfunction function,
                         CUstream stream, const LaunchShape& shape, void** args) {
  const ScopedContext current(driver, context);
  if (ABSL_PREDICT_FALSE(current.result() != CUDA_SUCCESS)) {
    return launch_error(driver, context, current.result(), shape);
  }
  CUlaunchAttribute attributes[3];
  unsigned int count = 0;
  if (shape.cluster[0] != 1 || shape.cluster[1] != 1 || shape.cluster[2] != 1) {
    CUlaunchAttribute& cluster = attributes[count++];
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = shape.cluster[0];
    cluster.value.clusterDim.y = shape.cluster[1];
    cluster.value.clusterDim.z = shape.cluster[2];
  }
  if (shape.programmatic_overlap) {
    CUlaunchAttribute& overlap = attributes[count++];
    overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    overlap.value.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cooperative) {
    CUlaunchAttribute& cooperative = attributes[count++];
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
  }
  CUlaunchConfig config;
  config.gridDimX = shape.grid[0];
  config.gridDimY = shape.grid[1];
  config.gridDimZ = shape.grid[2];
  config.blockDimX = shape.block[0];
  config.blockDimY = shape.block[1];
  config.blockDimZ = shape.block[2];
  config.sharedMemBytes = shape.smem_bytes;
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  const CUresult result = driver.launch_kernel_ex(&config, function, args, nullptr);
  if (ABSL_PREDICT_TRUE(result == CUDA_SUCCESS)) return absl::OkStatus();
  return launch_error(driver, context, result, shape);
}

}  // namespace kiln
