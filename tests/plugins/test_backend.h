#ifndef KILN_TESTS_PLUGINS_TEST_BACKEND_H_
#define KILN_TESTS_PLUGINS_TEST_BACKEND_H_

#include <kiln/ops/layer_norm.h>
#include <kiln/registry.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// What the plugins of these tests register: LayerNormFwdOp in float32 by plain host code, as an
// implementation for device type cpu or as a target.
namespace kiln::test_backend {

inline void normalize(const Tensor& x, const Tensor& y, std::int64_t n, double eps) {
  const auto* in = static_cast<const float*>(x.data);
  auto* out = static_cast<float*>(y.data);
  for (std::int64_t row = 0; row < x.elements() / n; ++row, in += n, out += n) {
    double mean = 0, var = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += in[i] / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i)
      var += (in[i] - mean) * (in[i] - mean) / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = static_cast<float>((in[i] - mean) / std::sqrt(var + eps));
  }
}

class HostLayerNorm : public Kernel, public LayerNormFwdInterface {
 public:
  static constexpr std::array<DeviceType, 1> devices{DeviceType::cpu()};
  static Entry<HostLayerNorm> entry_for(const LayerNormCall& call) {
    return Entry<HostLayerNorm>(call.n, call.eps);
  }
  HostLayerNorm(std::int64_t n, double eps) : n_(n), eps_(eps) {}
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
  absl::Status forward(const Stream&, const Tensor& x, const Tensor&, const Tensor&,
                       const Tensor& y, void*) const override {
    normalize(x, y, n_, eps_);
    return absl::OkStatus();
  }

 private:
  const std::int64_t n_;
  const double eps_;
};

class HostTargetKernel final : public TargetKernel {
 public:
  explicit HostTargetKernel(std::int64_t n) : n_(n) {}
  absl::Status run(const Stream&, std::span<const Tensor* const> inputs,
                   std::span<const Tensor* const> outputs, const ParamValues&) override {
    normalize(*inputs[0], *outputs[0], n_, 1e-5);
    return absl::OkStatus();
  }

 private:
  const std::int64_t n_;
};

inline void add_implementation(Registry& registry, const std::string& key) {
  registry.register_kernel_type("LayerNormFwdOp", key, kernel_type<HostLayerNorm>());
}
inline void add_target(Registry& registry, const std::string& target) {
  registry.register_detector(target, [](const Device&) { return false; });
  registry.register_kernel_builder(
      "LayerNormFwdOp", target,
      [](std::span<const std::optional<TensorSpec>> inputs,
         const ParamValues&) -> absl::StatusOr<std::unique_ptr<TargetKernel>> {
        const Dims& shape = inputs[0]->shape;
        return std::make_unique<HostTargetKernel>(shape[shape.size() - 1]);
      });
}

}  // namespace kiln::test_backend

#endif  // KILN_TESTS_PLUGINS_TEST_BACKEND_H_
