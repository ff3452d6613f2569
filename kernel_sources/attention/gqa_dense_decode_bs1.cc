#include "gqa_dense_decode_bs1.h"

namespace kiln {

Refusal GqaDenseDecodeBs1Kernel::refusal(const AttentionCall& call) {
  if (!call.dense_decode_region()) {
    return refuse("serves one query a sequence with k and v of q's 16-bit dtype, got seqlen_q ",
                  call.seqlen_q, ", q of ", call.dtype_q, ", k of ", call.dtype);
  }
  if (call.batch != 1) return refuse("serves a batch of 1, got ", call.batch);
  return DecodeKernel::refusal(call);
}

Config GqaDenseDecodeBs1Kernel::default_config(const DeviceFacts&) const {
  return {{"warps", 4}, {"keys_in_flight", 2}, {"cluster", 8}};
}

std::vector<Config> GqaDenseDecodeBs1Kernel::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t keys : {2, 4}) {
    for (std::int64_t cluster : {2, 4, 8}) {
      configs.push_back({{"warps", 4}, {"keys_in_flight", keys}, {"cluster", cluster}});
    }
  }
  return configs;
}

std::vector<Program> GqaDenseDecodeBs1Kernel::programs(const DeviceFacts&,
                                                       const Config& config) const {
  Program program = decode_program("gqa_dense_decode_bs1.cu", {"gqa_dense_decode_bs1"}, config);
  program.constants.push_back({"CLUSTER", config["cluster"]});
  return {program};
}

absl::Status GqaDenseDecodeBs1Kernel::forward(const Stream& stream,
                                              const GqaDecodeTensors& t) const {
  const Loaded& now = loaded(stream);
  const auto cluster = static_cast<std::uint32_t>(now.config["cluster"]);
  LaunchShape shape;
  shape.grid = {static_cast<std::uint32_t>(blocks_of_split(t)) * cluster, 1, 1};
  shape.block = {static_cast<std::uint32_t>(now.config["warps"] * 32), 1, 1};
  shape.cluster = {cluster, 1, 1};
  return launch(now, 0, stream, shape, args_of(t, cluster));
}

}  // namespace kiln
