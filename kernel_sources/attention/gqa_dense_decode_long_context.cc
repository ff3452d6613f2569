#include "gqa_dense_decode_long_context.h"

namespace kiln {
namespace {

constexpr std::int64_t kMinKeys = 1024;
constexpr std::int64_t kHeads = 32, kHeadsKv = 4, kDim = 128;

// The tiles of a block, rows padded by 16 bytes as the kernel lays them out.
std::int64_t smem_bytes(const Config& config) {
  return config["stages"] * 2 * config["tile_keys"] * (kDim * 2 + 16);
}

}  // namespace

Refusal GqaDenseDecodeLongContextKernel::refusal(const AttentionCall& call) {
  if (!call.dense_decode_region() || call.dtype != DType::float16) {
    return refuse("serves one query a sequence in float16, got seqlen_q ", call.seqlen_q, ", q of ",
                  call.dtype_q, ", k of ", call.dtype);
  }
  if (call.fuse_rope) return refuse("serves queries that are rotated already, got rope_cos");
  if (call.seqlen_kv < kMinKeys) {
    return refuse("serves at least ", kMinKeys, " keys, got ", call.seqlen_kv);
  }
  if (call.batch != 1) return refuse("serves a batch of 1, got ", call.batch);
  if (call.heads != kHeads || call.heads_kv != kHeadsKv || call.dim != kDim) {
    return refuse("serves ", kHeads, " heads on ", kHeadsKv, " of ", kDim, " elements, got ",
                  call.heads, " on ", call.heads_kv, " of ", call.dim);
  }
  if (call.softcap != 0) return refuse("serves scores without a cap, got softcap ", call.softcap);
  if (call.align < 16) {
    return refuse("reads heads at multiples of 16 bytes, got ", call.align);
  }
  return DecodeKernel::refusal(call);
}

Config GqaDenseDecodeLongContextKernel::default_config(const DeviceFacts&) const {
  return {{"tile_keys", 64}, {"stages", 2}, {"blocks_per_sm", 2}};
}

std::vector<Config> GqaDenseDecodeLongContextKernel::autotune_configs(
    const DeviceFacts& facts) const {
  std::vector<Config> configs;
  for (std::int64_t keys : {32, 64, 128}) {
    for (std::int64_t stages : {2, 3, 4}) {
      for (std::int64_t blocks : {1, 2, 3}) {
        const Config config{{"tile_keys", keys}, {"stages", stages}, {"blocks_per_sm", blocks}};
        // The query and the weights, at most 8 KiB, are in shared memory too.
        if (smem_bytes(config) + 8192 <= facts.smem_budget) configs.push_back(config);
      }
    }
  }
  return configs;
}

std::vector<Program> GqaDenseDecodeLongContextKernel::programs(const DeviceFacts&,
                                                               const Config& config) const {
  Program program;
  program.source = "kernel_sources/attention/gqa_dense_decode_long_context.cu";
  program.headers = {"kernel_sources/attention/decode_args.cuh",
                     "kernel_sources/attention/decode_combine.cuh",
                     "kernel_sources/attention/softmax.cuh", "kernel_sources/device/dtype.cuh",
                     "kernel_sources/device/memory.cuh"};
  program.kernels = {"gqa_dense_decode_long_context", "gqa_dense_decode_long_context_combine"};
  program.constants = {
      {"Q_DTYPE", facts().dtype_q}, {"DIM", facts().dim}, {"GROUP", facts().group()},
      {"SCALE", facts().scale},     {"SOFTCAP", 0.0},     {"TILE_KEYS", config["tile_keys"]},
      {"STAGES", config["stages"]}};
  program.smem_bytes = smem_bytes(config);
  return {program};
}

absl::Status GqaDenseDecodeLongContextKernel::forward(const Stream& stream,
                                                      const GqaDecodeTensors& t) const {
  const Loaded& now = loaded(stream);
  const std::int64_t splits = splits_for(t, now, kHeadsKv);
  LaunchShape shape;
  shape.block = {static_cast<std::uint32_t>(facts().group() * 32), 1, 1};
  shape.smem_bytes = static_cast<std::uint32_t>(smem_bytes(now.config));
  return launch_splits(stream, now, shape, t, splits, kHeadsKv * splits);
}

}  // namespace kiln
