#include "decode_kernel.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <limits>

namespace kiln {
namespace {

constexpr std::int64_t kMaxDim = 1024;
constexpr std::int64_t kMaxTile = 8;
constexpr std::int64_t kMaxVec = 8;
constexpr std::int64_t kWarpSize = 32;
// Elements of the query, and of the sums, that a thread keeps in registers.
constexpr std::int64_t kHeldElements = 64;

}  // namespace

Refusal DecodeKernel::refusal(const AttentionCall& call) {
  if (call.seqlen_q != 1) return refuse("serves one query a sequence, got ", call.seqlen_q);
  if (call.dim < 1 || call.dim > kMaxDim) {
    return refuse("serves heads of 1 to ", kMaxDim, " elements, got ", call.dim);
  }
  if (call.heads_kv < 1 || call.heads % call.heads_kv != 0) {
    return refuse("serves heads that are a multiple of heads_kv, got ", call.heads, " and ",
                  call.heads_kv);
  }
  return serves;
}

AttentionCall DecodeKernel::facts_of(const AttentionCall& call) {
  AttentionCall facts = call;
  facts.batch = 1;
  facts.seqlen_kv = 0;
  facts.heads = call.group();
  facts.heads_kv = 1;
  facts.where = {};
  return facts;
}

std::int64_t DecodeKernel::vec() const {
  const std::int64_t aligned = facts_.align / size_of(facts_.dtype);
  const std::int64_t least = size_of(facts_.dtype) == 1 ? 2 : 1;  // an access moves 2 bytes or more
  std::int64_t vec = std::clamp<std::int64_t>(aligned, least, kMaxVec);
  while (facts_.dim % vec != 0) vec /= 2;
  // No wider than leaves every lane of a warp an access of each key.
  while (vec > least && facts_.dim / vec < kWarpSize) vec /= 2;
  return vec;
}

std::int64_t DecodeKernel::tile() const {
  const std::int64_t packs = facts_.dim / vec();
  std::int64_t lanes = 1;
  while (lanes < packs && lanes < kWarpSize) lanes *= 2;
  const std::int64_t held = (packs + lanes - 1) / lanes * vec();
  return std::clamp<std::int64_t>(std::min(facts_.group(), kHeldElements / held), 1, kMaxTile);
}

std::int64_t DecodeKernel::blocks_of_split(const GqaDecodeTensors& t) const {
  const std::int64_t tiles = (facts_.group() + tile() - 1) / tile();
  return t.k.shape[0] * t.k.shape[2] * tiles;
}

Program DecodeKernel::decode_program(const std::string& source, std::vector<std::string> kernels,
                                     const Config& config) const {
  Program program;
  program.source = "kernel_sources/attention/" + source;
  program.headers = {"kernel_sources/attention/decode.cuh",
                     "kernel_sources/attention/decode_args.cuh",
                     "kernel_sources/attention/decode_combine.cuh",
                     "kernel_sources/attention/softmax.cuh",
                     "kernel_sources/device/dtype.cuh",
                     "kernel_sources/device/float8.cuh",
                     "kernel_sources/device/memory.cuh",
                     "kernel_sources/device/reduce.cuh"};
  program.kernels = std::move(kernels);
  program.constants = {{"Q_DTYPE", facts_.dtype_q},
                       {"KV_DTYPE", facts_.dtype},
                       {"DIM", facts_.dim},
                       {"GROUP", facts_.group()},
                       {"TILE", tile()},
                       {"VEC", vec()},
                       {"SCALE", facts_.scale},
                       {"SOFTCAP", facts_.softcap},
                       {"ROPE", facts_.fuse_rope},
                       {"WARPS", config["warps"]},
                       {"KEYS", config["keys_in_flight"]}};
  return program;
}

std::int64_t DecodeKernel::splits_for(const GqaDecodeTensors& t, const Loaded& loaded,
                                      std::int64_t blocks_of_split) const {
  const std::int64_t wanted = loaded.config["blocks_per_sm"] * loaded.facts.sm_count;
  const std::int64_t splits =
      (wanted + blocks_of_split - 1) / std::max<std::int64_t>(blocks_of_split, 1);
  return std::clamp<std::int64_t>(splits, 1, max_splits(t.k.shape[0], t.k.shape[2], t.k.shape[1]));
}

attention::DecodeArgs DecodeKernel::args_of(const GqaDecodeTensors& t, std::int64_t splits) {
  attention::DecodeArgs args{};
  args.q = t.q.data;
  args.k = t.k.data;
  args.v = t.v.data;
  args.k_scale = static_cast<const float*>(t.k_scale.data);
  args.v_scale = static_cast<const float*>(t.v_scale.data);
  args.rope_cos = static_cast<const float*>(t.rope_cos.data);
  args.rope_sin = static_cast<const float*>(t.rope_sin.data);
  args.out = t.out.data;
  args.partial_sums = static_cast<float*>(t.workspace.data);
  if (splits > 1) {
    args.partial_stats = args.partial_sums + t.out.elements() * splits;
  }
  args.k_batch_stride = t.k.strides[0];
  args.k_key_stride = t.k.strides[1];
  args.k_head_stride = t.k.strides[2];
  args.v_batch_stride = t.v.strides[0];
  args.v_key_stride = t.v.strides[1];
  args.v_head_stride = t.v.strides[2];
  args.seqlen_kv = t.k.shape[1];
  args.heads_kv = static_cast<int>(t.k.shape[2]);
  args.splits = static_cast<int>(splits);
  args.keys_of_split = (t.k.shape[1] + splits - 1) / splits;
  args.rope_pairs = t.rope_cos.data == nullptr ? 0 : static_cast<int>(t.rope_cos.shape[0]);
  return args;
}

absl::Status DecodeKernel::launch_splits(const Stream& stream, const Loaded& loaded,
                                         const LaunchShape& shape, const GqaDecodeTensors& t,
                                         std::int64_t splits, std::int64_t blocks) const {
  constexpr std::int64_t kMaxGrid = std::numeric_limits<std::int32_t>::max();
  const std::int64_t heads = t.q.shape[0] * t.q.shape[1];
  if (blocks > kMaxGrid || heads > kMaxGrid) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "gqa decode: batch times heads must fit a grid of %d blocks: got %d", kMaxGrid, heads));
  }
  const attention::DecodeArgs args = args_of(t, splits);
  LaunchShape first = shape;
  first.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  KILN_RETURN_IF_ERROR(launch(loaded, 0, stream, first, args));
  if (splits == 1) return absl::OkStatus();
  LaunchShape combine;
  combine.grid = {static_cast<std::uint32_t>(heads), 1, 1};
  combine.block = {128, 1, 1};
  return launch(loaded, 1, stream, combine, args);
}

}  // namespace kiln
