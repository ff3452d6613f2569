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

// (x - mean) / sqrt(var + eps) in two passes; without `centred`, x / sqrt(mean(x^2) + eps).
void normalize_row(const double* x, double* y, std::int64_t n, double eps, bool centred) {
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; centred && i < n; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale;
}

// What a normalised row is multiplied by and what is added; null: nothing.
struct Factors {
  const double* scale = nullptr;
  const double* shift = nullptr;
  const double* gate = nullptr;
  bool of_rows = false;  // they have x's size, not a row's
};

void normalize(const ParamValues& params, const HostTensor& x, const HostTensor& y, bool centred,
               const Factors& f) {
  const std::int64_t n = row_length(params);
  const double eps = std::get<double>(*find_param(params, "eps"));
  const std::int64_t rows = n == 0 ? 0 : numel(x.shape) / n;
  for (std::int64_t r = 0; r < rows; ++r) {
    double* out = y.data + r * n;
    normalize_row(x.data + r * n, out, n, eps, centred);
    const std::int64_t at = f.of_rows ? r * n : 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (f.scale != nullptr) out[i] *= f.scale[at + i];
      if (f.shift != nullptr) out[i] += f.shift[at + i];
      if (f.gate != nullptr) out[i] *= f.gate[at + i];
    }
  }
}

// outputs[1] = x + residual as the tensor holds it: the op normalises the sum it returns, which was
// added in float32 and rounded.
void add(std::span<const HostTensor> inputs, std::span<const HostTensor> outputs) {
  const std::int64_t count = numel(inputs[0].shape);
  for (std::int64_t i = 0; i < count; ++i)
    outputs[1].data[i] =
        round_to(outputs[1].dtype, round_to(DType::float32, inputs[0].data[i] + inputs[1].data[i]));
}

}  // namespace

absl::Status layer_norm_reference(const ParamValues& params, const ParamValues&,
                                  std::span<const HostTensor> inputs,
                                  std::span<const HostTensor> outputs) {
  normalize(params, inputs[0], outputs[0], true,
            {.scale = inputs[1].data, .shift = inputs[2].data});
  return absl::OkStatus();
}

absl::Status rms_norm_reference(const ParamValues& params, const ParamValues&,
                                std::span<const HostTensor> inputs,
                                std::span<const HostTensor> outputs) {
  normalize(params, inputs[0], outputs[0], false, {.scale = inputs[1].data});
  return absl::OkStatus();
}

absl::Status fused_add_layer_norm_reference(const ParamValues& params, const ParamValues&,
                                            std::span<const HostTensor> inputs,
                                            std::span<const HostTensor> outputs) {
  add(inputs, outputs);
  normalize(params, outputs[1], outputs[0], true,
            {.scale = inputs[2].data, .shift = inputs[3].data});
  return absl::OkStatus();
}

absl::Status fused_add_rms_norm_reference(const ParamValues& params, const ParamValues&,
                                          std::span<const HostTensor> inputs,
                                          std::span<const HostTensor> outputs) {
  add(inputs, outputs);
  normalize(params, outputs[1], outputs[0], false, {.scale = inputs[2].data});
  return absl::OkStatus();
}

absl::Status ada_layer_norm_reference(const ParamValues& params, const ParamValues&,
                                      std::span<const HostTensor> inputs,
                                      std::span<const HostTensor> outputs) {
  normalize(params, inputs[0], outputs[0], true,
            {.scale = inputs[1].data, .shift = inputs[2].data, .of_rows = true});
  return absl::OkStatus();
}

absl::Status ada_layer_norm_zero_reference(const ParamValues& params, const ParamValues&,
                                           std::span<const HostTensor> inputs,
                                           std::span<const HostTensor> outputs) {
  normalize(
      params, inputs[0], outputs[0], true,
      {.scale = inputs[1].data, .shift = inputs[2].data, .gate = inputs[3].data, .of_rows = true});
  return absl::OkStatus();
}

}  // namespace kiln
