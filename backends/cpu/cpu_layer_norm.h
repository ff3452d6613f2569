#ifndef KILN_BACKENDS_CPU_CPU_LAYER_NORM_H_
#define KILN_BACKENDS_CPU_CPU_LAYER_NORM_H_

#include <kiln/kernel.h>
#include <kiln/ops/layer_norm.h>

#include "layer_norm_support.h"

#include <array>
#include <vector>

namespace kiln::cpu {

// Layer normalization on the host, rows of any length and alignment. One binary serves every
// length: n is no constant of the program.
class CpuLayerNormKernel final : public Kernel, public LayerNormFwdInterface {
 public:
  static constexpr std::array devices{DeviceType::cpu()};
  static Refusal refusal(const LayerNormCall& call) { return layer_norm_refusal(call); }
  static Entry<CpuLayerNormKernel> entry_for(const LayerNormCall& call) {
    return Entry<CpuLayerNormKernel>(call.dtype, call.eps, call.has_weight, call.has_bias);
  }

  CpuLayerNormKernel(DType dtype, double eps, bool has_weight, bool has_bias)
      : dtype_(dtype), eps_(eps), has_weight_(has_weight), has_bias_(has_bias) {}

  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  Config default_config(const DeviceFacts& facts) const override { return row_config(facts); }
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override {
    return row_configs(facts);
  }

  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, const Tensor& y, void* workspace) const override;

 private:
  const DType dtype_;
  const double eps_;
  const bool has_weight_;
  const bool has_bias_;
};

}  // namespace kiln::cpu

#endif  // KILN_BACKENDS_CPU_CPU_LAYER_NORM_H_
