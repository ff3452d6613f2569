#include "gqa_dense_decode.h"

namespace kiln {

Refusal GqaDenseDecodeKernel::refusal(const AttentionCall& call) {
  if (!call.dense_decode_region()) {
    return refuse("serves one query a sequence with k and v of q's 16-bit dtype, got seqlen_q ",
                  call.seqlen_q, ", q of ", call.dtype_q, ", k of ", call.dtype);
  }
  return DecodeKernel::refusal(call);
}

Config GqaDenseDecodeKernel::default_config(const DeviceFacts&) const {
  return {{"warps", 4}, {"keys_in_flight", 2}, {"blocks_per_sm", 3}};
}

std::vector<Config> GqaDenseDecodeKernel::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t keys : {2, 4}) {
    for (std::int64_t blocks : {1, 2, 3, 4}) {
      configs.push_back({{"warps", 4}, {"keys_in_flight", keys}, {"blocks_per_sm", blocks}});
    }
  }
  return configs;
}

std::vector<Program> GqaDenseDecodeKernel::programs(const DeviceFacts&,
                                                    const Config& config) const {
  return {decode_program("gqa_dense_decode.cu", {"gqa_dense_decode", "gqa_dense_decode_combine"},
                         config)};
}

absl::Status GqaDenseDecodeKernel::forward(const Stream& stream, const GqaDecodeTensors& t) const {
  const Loaded& now = loaded(stream);
  const std::int64_t blocks = blocks_of_split(t);
  const std::int64_t splits = splits_for(t, now, blocks);
  LaunchShape shape;
  shape.block = {static_cast<std::uint32_t>(now.config["warps"] * 32), 1, 1};
  return launch_splits(stream, now, shape, t, splits, blocks * splits);
}

}  // namespace kiln
