#include "cpu_layer_norm_short.h"

namespace kiln::cpu {

std::vector<Program> CpuLayerNormShortKernel::programs(const DeviceFacts& /*facts*/,
                                                       const Config& config) const {
  return {host_program("cpu_layer_norm_short", {"block.hpp", "dtype.hpp", "layer_norm_row.hpp"},
                       {{"N", n_},
                        {"DTYPE", dtype_},
                        {"EPS", eps_},
                        {"HAS_WEIGHT", has_weight_},
                        {"HAS_BIAS", has_bias_}},
                       config)};
}

absl::Status CpuLayerNormShortKernel::forward(const Stream& stream, const Tensor& x,
                                              const Tensor& weight, const Tensor& bias,
                                              const Tensor& y, void* /*workspace*/) const {
  const Loaded& here = loaded(stream);
  const std::int64_t rows = x.shape[0], stride = x.strides[0];
  if (rows == 0) return absl::OkStatus();
  const RowGrid grid = row_grid(rows, n_, here.config);
  const void* const from = x.data;
  const void* const scale = weight.data;
  const void* const shift = bias.data;
  return launch(here, 0, stream, grid.shape, from, scale, shift, y.data, rows, stride,
                grid.block_rows);
}

}  // namespace kiln::cpu
