#include "reference.h"

#include <cmath>
#include <cstdint>
#include <variant>
#include <vector>

namespace kiln {
namespace {

std::int64_t row_length(const ParamValues& params) {
  std::int64_t n = 1;
  for (std::int64_t extent :
       std::get<std::vector<std::int64_t>>(*find_param(params, "normalized_shape")))
    n *= extent;
  return n;
}

// (x - mean) / sqrt(var + eps), in two passes.
void normalize_row(const double* x, double* y, std::int64_t n, double eps) {
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale;
}

}  // namespace

absl::Status layer_norm_reference(const ParamValues& params, const ParamValues&,
                                  std::span<const HostTensor> inputs,
                                  std::span<const HostTensor> outputs) {
  const std::int64_t n = row_length(params);
  const double eps = std::get<double>(*find_param(params, "eps"));
  const double* weight = inputs[1].data;
  const double* bias = inputs[2].data;
  const std::int64_t rows = n == 0 ? 0 : numel(inputs[0].shape) / n;
  for (std::int64_t r = 0; r < rows; ++r) {
    double* y = outputs[0].data + r * n;
    normalize_row(inputs[0].data + r * n, y, n, eps);
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = y[i] * (weight == nullptr ? 1 : weight[i]) + (bias == nullptr ? 0 : bias[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln
