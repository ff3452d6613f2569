#ifndef KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_H_
#define KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_H_

#include "decode_kernel.h"

#include <vector>

namespace kiln {

// Decode with k and v of q's dtype, of any shape: the implementation below all others.
class GqaDenseDecodeKernel final : public DecodeKernel {
 public:
  static constexpr bool general = true;
  static Refusal refusal(const AttentionCall& call);
  static Entry<GqaDenseDecodeKernel> entry_for(const AttentionCall& call) {
    return Entry<GqaDenseDecodeKernel>(facts_of(call));
  }
  explicit GqaDenseDecodeKernel(const AttentionCall& facts) : DecodeKernel(facts) {}

  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const GqaDecodeTensors& tensors) const override;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_H_
