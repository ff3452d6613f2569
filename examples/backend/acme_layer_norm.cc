#include "acme_layer_norm.h"

#include <cmath>
#include <string>
#include <variant>

namespace acme {
namespace {

struct Rows {
  std::int64_t count = 0, n = 0, stride = 0;
};

void normalize(const float* x, const float* weight, const float* bias, float* y, const Rows& rows,
               double eps) {
  const auto n = static_cast<double>(rows.n);
  for (std::int64_t row = 0; row < rows.count; ++row, x += rows.stride, y += rows.n) {
    double mean = 0, var = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) mean += x[i] / n;
    for (std::int64_t i = 0; i < rows.n; ++i) var += (x[i] - mean) * (x[i] - mean) / n;
    const double rstd = 1 / std::sqrt(var + eps);
    for (std::int64_t i = 0; i < rows.n; ++i) {
      const double h = (x[i] - mean) * rstd;
      y[i] = static_cast<float>(h * (weight != nullptr ? weight[i] : 1.0F) +
                                (bias != nullptr ? bias[i] : 0.0F));
    }
  }
}

const float* floats(const kiln::Tensor* tensor) {
  return tensor == nullptr ? nullptr : static_cast<const float*>(tensor->data);
}

class LayerNormTargetKernel final : public kiln::TargetKernel {
 public:
  LayerNormTargetKernel(Rows rows, double eps) : rows_(rows), eps_(eps) {}
  absl::Status run(const kiln::Stream&, std::span<const kiln::Tensor* const> inputs,
                   std::span<const kiln::Tensor* const> outputs,
                   const kiln::ParamValues&) override {
    normalize(floats(inputs[0]), floats(inputs[1]), floats(inputs[2]),
              static_cast<float*>(outputs[0]->data), rows_, eps_);
    return absl::OkStatus();
  }

 private:
  const Rows rows_;
  const double eps_;
};

}  // namespace

absl::Status HostLayerNormKernel::forward(const kiln::Stream&, const kiln::Tensor& x,
                                          const kiln::Tensor& weight, const kiln::Tensor& bias,
                                          const kiln::Tensor& y, void* /*workspace*/) const {
  normalize(floats(&x), floats(&weight), floats(&bias), static_cast<float*>(y.data),
            {x.shape[0], x.shape[1], x.strides[0]}, eps_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<kiln::TargetKernel>> build_layer_norm(
    std::span<const std::optional<kiln::TensorSpec>> inputs, const kiln::ParamValues& params) {
  const kiln::TensorSpec& x = *inputs[0];
  if (x.dtype != kiln::DType::float32) {
    return absl::UnimplementedError("x must be float32: got " +
                                    std::string(kiln::to_string(x.dtype)));
  }
  const auto& shape =
      std::get<std::vector<std::int64_t>>(*kiln::find_param(params, "normalized_shape"));
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  const double eps = std::get<double>(*kiln::find_param(params, "eps"));
  return std::make_unique<LayerNormTargetKernel>(Rows{kiln::numel(x.shape) / n, n, n}, eps);
}

}  // namespace acme
