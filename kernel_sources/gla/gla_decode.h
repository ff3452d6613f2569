#ifndef KILN_KERNEL_SOURCES_GLA_GLA_DECODE_H_
#define KILN_KERNEL_SOURCES_GLA_GLA_DECODE_H_

#include "gla_kernel.h"

#include <vector>

namespace kiln {

// One token: one pass over the state.
class GlaDecodeKernel final : public GlaKernel {
 public:
  static constexpr auto preferred_over = keys("gla_prefill");
  static Refusal refusal(const GlaCall& call);
  static Entry<GlaDecodeKernel> entry_for(const GlaCall& call) {
    return Entry<GlaDecodeKernel>(facts_of(call));
  }
  explicit GlaDecodeKernel(const GlaCall& facts) : GlaKernel(facts) {}

  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& g, const Tensor& initial_state, const Tensor& o,
                       const Tensor& final_state) const override;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_GLA_GLA_DECODE_H_
