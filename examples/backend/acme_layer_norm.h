#ifndef KILN_EXAMPLES_BACKEND_ACME_LAYER_NORM_H_
#define KILN_EXAMPLES_BACKEND_ACME_LAYER_NORM_H_

#include <kiln/kernel.h>
#include <kiln/ops/layer_norm.h>
#include <kiln/target.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace acme {

// An implementation: it serves float32 rows of the device type cpu, beside those that are there. It
// is host code in the plugin, so there is nothing to compile.
class HostLayerNormKernel final : public kiln::Kernel, public kiln::LayerNormFwdInterface {
 public:
  static constexpr std::array devices{kiln::DeviceType::cpu()};
  static constexpr auto preferred_over = kiln::keys("cpu_layer_norm", "cpu_layer_norm_short");
  static kiln::Refusal refusal(const kiln::LayerNormCall& call) {
    if (call.dtype != kiln::DType::float32) return kiln::refuse("serves float32, got ", call.dtype);
    if (call.n > 8) return kiln::refuse("serves rows of at most 8, got ", call.n);
    return kiln::serves;
  }
  static kiln::Entry<HostLayerNormKernel> entry_for(const kiln::LayerNormCall& call) {
    return kiln::Entry<HostLayerNormKernel>(call.eps);
  }

  explicit HostLayerNormKernel(double eps) : eps_(eps) {}

  std::vector<kiln::Program> programs(const kiln::DeviceFacts&,
                                      const kiln::Config&) const override {
    return {};
  }
  absl::Status forward(const kiln::Stream& stream, const kiln::Tensor& x,
                       const kiln::Tensor& weight, const kiln::Tensor& bias, const kiln::Tensor& y,
                       void* workspace) const override;

 private:
  const double eps_;
};

// The target's builder for LayerNormFwdOp: called once for each device and set of input specs.
absl::StatusOr<std::unique_ptr<kiln::TargetKernel>> build_layer_norm(
    std::span<const std::optional<kiln::TensorSpec>> inputs, const kiln::ParamValues& params);

}  // namespace acme

#endif  // KILN_EXAMPLES_BACKEND_ACME_LAYER_NORM_H_
