#ifndef KILN_BACKENDS_CPU_CPU_LAYER_NORM_SHORT_H_
#define KILN_BACKENDS_CPU_CPU_LAYER_NORM_SHORT_H_

#include <kiln/kernel.h>
#include <kiln/ops/layer_norm.h>

#include "layer_norm_support.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kiln::cpu {

// Layer normalization of rows of at most 64 elements on the host: n is a constant, so that the
// compiler unrolls a row and keeps weight and bias at hand.
class CpuLayerNormShortKernel final : public Kernel, public LayerNormFwdInterface {
 public:
  static constexpr std::array devices{DeviceType::cpu()};
  static constexpr auto preferred_over = keys("cpu_layer_norm");
  static constexpr std::int64_t kMaxN = 64;
  static Refusal refusal(const LayerNormCall& call) {
    if (call.n > kMaxN) return refuse("serves rows of at most ", kMaxN, " elements, got ", call.n);
    return layer_norm_refusal(call);
  }
  static Entry<CpuLayerNormShortKernel> entry_for(const LayerNormCall& call) {
    return Entry<CpuLayerNormShortKernel>(call.n, call.dtype, call.eps, call.has_weight,
                                          call.has_bias);
  }

  CpuLayerNormShortKernel(std::int64_t n, DType dtype, double eps, bool has_weight, bool has_bias)
      : n_(n), dtype_(dtype), eps_(eps), has_weight_(has_weight), has_bias_(has_bias) {}

  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  Config default_config(const DeviceFacts& facts) const override { return row_config(facts); }
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override {
    return row_configs(facts);
  }

  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, const Tensor& y, void* workspace) const override;

 private:
  const std::int64_t n_;
  const DType dtype_;
  const double eps_;
  const bool has_weight_;
  const bool has_bias_;
};

}  // namespace kiln::cpu

#endif  // KILN_BACKENDS_CPU_CPU_LAYER_NORM_SHORT_H_
