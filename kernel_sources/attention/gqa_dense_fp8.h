#ifndef KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_FP8_H_
#define KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_FP8_H_

#include "decode_kernel.h"

#include <vector>

namespace kiln {

// Attention over k and v of float8_e4m3, of any shape: a block for all keys of a kv head.
class GqaDenseFp8Kernel : public DecodeKernel {
 public:
  static Refusal refusal(const AttentionCall& call);
  static Entry<GqaDenseFp8Kernel> entry_for(const AttentionCall& call) {
    return Entry<GqaDenseFp8Kernel>(facts_of(call));
  }
  explicit GqaDenseFp8Kernel(const AttentionCall& facts) : DecodeKernel(facts) {}

  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  absl::Status forward(const Stream& stream, const GqaDecodeTensors& tensors) const override;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ATTENTION_GQA_DENSE_FP8_H_
