#include "gemm_short.h"

namespace kiln {

Config GemmShortKernel::default_config(const DeviceFacts&) const { return {{"threads", 128}}; }

std::vector<Program> GemmShortKernel::programs(const DeviceFacts&, const Config& config) const {
  Program program;
  program.source = "kernel_sources/gemm/gemm_short.cu";
  program.headers = {"kernel_sources/device/dtype.cuh"};
  program.kernels = {"gemm_short"};
  program.constants = {{"DTYPE", dtype_}, {"K", k_}, {"THREADS", config["threads"]}};
  return {program};
}

absl::Status GemmShortKernel::forward(const Stream& stream, const Tensor& a, const Tensor& b,
                                      const Tensor& d) const {
  const Loaded& now = loaded(stream);
  const std::int64_t m = a.shape[0], n = b.shape[0], threads = now.config["threads"];
  const std::int64_t blocks = (m * n + threads - 1) / threads;
  if (blocks > INT32_MAX)
    return absl::InvalidArgumentError("gemm_short: d must have fewer elements");
  LaunchShape shape;
  shape.grid[0] = static_cast<std::uint32_t>(blocks);
  shape.block[0] = static_cast<std::uint32_t>(threads);
  return launch(now, 0, stream, shape, a.data, b.data, d.data, m, n, a.strides[0], b.strides[0]);
}

}  // namespace kiln
