#include "gqa_dense_fp8_decode.h"

namespace kiln {
namespace {

constexpr std::int64_t kMinKeys = 2048;
constexpr std::int64_t kMaxGroup = 16;
constexpr std::int64_t kDimStep = 32, kMaxDim = 128;

}  // namespace

Refusal GqaDenseFp8DecodeKernel::refusal(const AttentionCall& call) {
  if (call.batch != 1) return refuse("serves a batch of 1, got ", call.batch);
  if (call.seqlen_kv < kMinKeys) {
    return refuse("serves at least ", kMinKeys, " keys, got ", call.seqlen_kv);
  }
  if (call.group() > kMaxGroup) {
    return refuse("serves at most ", kMaxGroup, " heads a kv head, got ", call.group());
  }
  if (call.dim % kDimStep != 0 || call.dim > kMaxDim) {
    return refuse("serves heads of a multiple of ", kDimStep, " elements, at most ", kMaxDim,
                  ", got ", call.dim);
  }
  if (call.fuse_rope) return refuse("serves queries that are rotated already, got rope_cos");
  return GqaDenseFp8Kernel::refusal(call);
}

Config GqaDenseFp8DecodeKernel::default_config(const DeviceFacts&) const {
  return {{"warps", 4}, {"keys_in_flight", 4}, {"blocks_per_sm", 3}};
}

std::vector<Config> GqaDenseFp8DecodeKernel::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t keys : {2, 4}) {
    for (std::int64_t blocks : {1, 2, 3, 4}) {
      configs.push_back({{"warps", 4}, {"keys_in_flight", keys}, {"blocks_per_sm", blocks}});
    }
  }
  return configs;
}

std::vector<Program> GqaDenseFp8DecodeKernel::programs(const DeviceFacts&,
                                                       const Config& config) const {
  return {decode_program("gqa_dense_fp8_decode.cu",
                         {"gqa_dense_fp8_decode", "gqa_dense_fp8_decode_combine"}, config)};
}

absl::Status GqaDenseFp8DecodeKernel::forward(const Stream& stream,
                                              const GqaDecodeTensors& t) const {
  const Loaded& now = loaded(stream);
  const std::int64_t blocks = blocks_of_split(t);
  const std::int64_t splits = splits_for(t, now, blocks);
  LaunchShape shape;
  shape.block = {static_cast<std::uint32_t>(now.config["warps"] * 32), 1, 1};
  return launch_splits(stream, now, shape, t, splits, blocks * splits);
}

}  // namespace kiln
