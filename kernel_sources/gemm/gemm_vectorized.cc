#include "gemm_vectorized.h"

#include "grid.h"

namespace kiln {
namespace {

constexpr int kVectorBytes = 16;

}  // namespace

Refusal GemmVectorizedKernel::refusal(const GemmCall& call) {
  const std::int64_t vector = kVectorBytes / size_of(call.dtype);
  if (call.k < vector) {
    return refuse("k must span at least one vector of ", vector, " elements of ", call.dtype,
                  ", got ", call.k);
  }
  if (call.trans_a || !call.trans_b) {
    return refuse("serves a as [m, k] and b as [n, k], got ",
                  call.trans_a ? "a as [k, m]" : "b as [k, n]");
  }
  if (call.align < kVectorBytes) {
    return refuse("rows must begin at multiples of ", kVectorBytes, " bytes, got ", call.align);
  }
  return serves;
}

Config GemmVectorizedKernel::default_config(const DeviceFacts&) const {
  return {{"warps", 4}, {"rows", 4}};
}

std::vector<Config> GemmVectorizedKernel::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t warps : {2, 4, 8}) {
    for (std::int64_t rows : {1, 2, 4, 8}) configs.push_back({{"warps", warps}, {"rows", rows}});
  }
  return configs;
}

std::vector<Program> GemmVectorizedKernel::programs(const DeviceFacts&,
                                                    const Config& config) const {
  Program program;
  program.source = "kernel_sources/gemm/gemm_vectorized.cu";
  program.headers = {"kernel_sources/device/dtype.cuh", "kernel_sources/device/memory.cuh",
                     "kernel_sources/device/reduce.cuh"};
  program.kernels = {"gemm_vectorized"};
  program.constants = {{"DTYPE", dtype_}, {"ROWS", config["rows"]}, {"WARPS", config["warps"]}};
  return {program};
}

absl::Status GemmVectorizedKernel::forward(const Stream& stream, const Tensor& a, const Tensor& b,
                                           const Tensor& d) const {
  const Loaded& now = loaded(stream);
  const std::int64_t m = a.shape[0], n = b.shape[0], k = a.shape[1];
  const std::int64_t warps = now.config["warps"];
  LaunchShape shape;
  KILN_ASSIGN_OR_RETURN(shape.grid[0],
                        grid_of(divide_up(m, now.config["rows"]), divide_up(n, warps)));
  shape.block = {static_cast<std::uint32_t>(warps * 32), 1, 1};
  return launch(now, 0, stream, shape, a.data, b.data, d.data, m, n, k, a.strides[0], b.strides[0]);
}

}  // namespace kiln
