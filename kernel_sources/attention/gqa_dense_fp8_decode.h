#ifndef KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_FP8_DECODE_H_
#define KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_FP8_DECODE_H_

#include "gqa_dense_fp8.h"

#include <vector>

namespace kiln {

// Decode of one long sequence over k and v of float8_e4m3: splits fill the device.
class GqaDenseFp8DecodeKernel final : public GqaDenseFp8Kernel {
 public:
  static constexpr auto preferred_over = keys("gqa_dense_fp8");
  static Refusal refusal(const AttentionCall& call);
  static Entry<GqaDenseFp8DecodeKernel> entry_for(const AttentionCall& call) {
    return Entry<GqaDenseFp8DecodeKernel>(facts_of(call));
  }
  explicit GqaDenseFp8DecodeKernel(const AttentionCall& facts) : GqaDenseFp8Kernel(facts) {}

  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const GqaDecodeTensors& tensors) const override;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_FP8_DECODE_H_
