#ifndef KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_BS1_H_
#define KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_BS1_H_

#include "decode_kernel.h"

#include <vector>

namespace kiln {

// Decode of one sequence in one launch: a cluster of blocks shares the keys of a kv head.
class GqaDenseDecodeBs1Kernel final : public DecodeKernel {
 public:
  static constexpr auto supported_archs = archs(90);
  static Refusal refusal(const AttentionCall& call);
  static Entry<GqaDenseDecodeBs1Kernel> entry_for(const AttentionCall& call) {
    return Entry<GqaDenseDecodeBs1Kernel>(facts_of(call));
  }
  explicit GqaDenseDecodeBs1Kernel(const AttentionCall& facts) : DecodeKernel(facts) {}

  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const GqaDecodeTensors& tensors) const override;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_DECODE_BS1_H_
