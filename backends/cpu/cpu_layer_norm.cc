#include "cpu_layer_norm.h"

namespace kiln::cpu {

std::vector<Program> CpuLayerNormKernel::programs(const DeviceFacts& /*facts*/,
                                                  const Config& config) const {
  return {host_program(
      "cpu_layer_norm", {"block.hpp", "dtype.hpp", "layer_norm_row.hpp"},
      {{"DTYPE", dtype_}, {"EPS", eps_}, {"HAS_WEIGHT", has_weight_}, {"HAS_BIAS", has_bias_}},
      config)};
}

absl::Status CpuLayerNormKernel::forward(const Stream& stream, const Tensor& x,
                                         const Tensor& weight, const Tensor& bias, const Tensor& y,
                                         void* /*workspace*/) const {
  const Loaded& here = loaded(stream);
  const std::int64_t rows = x.shape[0], n = x.shape[1], stride = x.strides[0];
  if (rows == 0) return absl::OkStatus();
  const RowGrid grid = row_grid(rows, n, here.config);
  const void* const from = x.data;
  const void* const scale = weight.data;
  const void* const shift = bias.data;
  return launch(here, 0, stream, grid.shape, from, scale, shift, y.data, rows, n, stride,
                grid.block_rows);
}

}  // namespace kiln::cpu
