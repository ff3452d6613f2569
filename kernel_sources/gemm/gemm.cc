#include "gemm.h"

#include "grid.h"

namespace kiln {
namespace {

constexpr std::int64_t kTile = 64;  // as in gemm.cu
constexpr std::uint32_t kThreads = 256;

}  // namespace

std::vector<Program> GemmKernel::programs(const DeviceFacts&, const Config&) const {
  Program program;
  program.source = "kernel_sources/gemm/gemm.cu";
  program.headers = {"kernel_sources/device/dtype.cuh"};
  program.kernels = {"gemm"};
  program.constants = {{"DTYPE", dtype_}};
  return {program};
}

absl::Status GemmKernel::forward(const Stream& stream, const Tensor& a, const Tensor& b,
                                 const Tensor& d) const {
  const std::int64_t m = a.shape[0], n = b.shape[0], k = a.shape[1];
  LaunchShape shape;
  KILN_ASSIGN_OR_RETURN(shape.grid[0], grid_of(divide_up(m, kTile), divide_up(n, kTile)));
  shape.block = {kThreads, 1, 1};
  return launch(loaded(stream), 0, stream, shape, a.data, b.data, d.data, m, n, k, a.strides[0],
                a.strides[1], b.strides[0], b.strides[1]);
}

}  // namespace kiln
