#ifndef KILN_KERNEL_SOURCES_ATTENTION_DECODE_KERNEL_H_
#define KILN_KERNEL_SOURCES_ATTENTION_DECODE_KERNEL_H_

#include <kiln/kernel.h>
#include <kiln/ops/gqa_decode.h>

#include "decode_args.cuh"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

// What the decode kernels of this family share. Immutable.
class DecodeKernel : public Kernel, public GqaDecodeFwdInterface {
 public:
  static constexpr auto supported_archs = archs(80, 86, 89, 90, 100, 120);
  static Refusal refusal(const AttentionCall& call);

 protected:
  // The facts of a call that change what is built: how many sequences and keys there are is none,
  // and of the heads only how many share a kv head.
  static AttentionCall facts_of(const AttentionCall& call);
  explicit DecodeKernel(const AttentionCall& facts) : facts_(facts) {}
  const AttentionCall& facts() const { return facts_; }

  // Query heads that a block takes, and elements of an access.
  std::int64_t tile() const;
  std::int64_t vec() const;
  // Blocks that one split of a call takes.
  std::int64_t blocks_of_split(const GqaDecodeTensors& t) const;
  // The program of `source` with the constants of decode.cuh.
  Program decode_program(const std::string& source, std::vector<std::string> kernels,
                         const Config& config) const;
  // As few splits as give `blocks_per_sm` blocks to every multiprocessor, within what the workspace
  // holds.
  std::int64_t splits_for(const GqaDecodeTensors& t, const Loaded& loaded,
                          std::int64_t blocks_of_split) const;

  static attention::DecodeArgs args_of(const GqaDecodeTensors& t, std::int64_t splits);
  // Launches function 0 with a grid of `blocks`, and function 1, the combine kernel, where there
  // are splits.
  absl::Status launch_splits(const Stream& stream, const Loaded& loaded, const LaunchShape& shape,
                             const GqaDecodeTensors& t, std::int64_t splits,
                             std::int64_t blocks) const;

 private:
  AttentionCall facts_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ATTENTION_DECODE_KERNEL_H_
