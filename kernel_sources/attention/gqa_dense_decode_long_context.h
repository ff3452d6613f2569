#ifndef KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_LONG_CONTEXT_H_
#define KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_LONG_CONTEXT_H_

#include "decode_kernel.h"

#include <vector>

namespace kiln {

// Decode of one long sequence of the shape of Qwen3-30B: 32 query heads, 4 kv heads, 128 elements,
// float16.
class GqaDenseDecodeLongContextKernel final : public DecodeKernel {
 public:
  static constexpr auto preferred_over = keys("gqa_dense_decode_bs1");
  static Refusal refusal(const AttentionCall& call);
  static Entry<GqaDenseDecodeLongContextKernel> entry_for(const AttentionCall& call) {
    return Entry<GqaDenseDecodeLongContextKernel>(facts_of(call));
  }
  explicit GqaDenseDecodeLongContextKernel(const AttentionCall& facts) : DecodeKernel(facts) {}

  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const GqaDecodeTensors& tensors) const override;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_LONG_CONTEXT_H_
