#include "row_placements.h"

#include "hints.h"

#include <algorithm>
#include <bit>

namespace kiln {
namespace {

constexpr std::int64_t kWarpBytes = 1024;         // more than that a lane does not hold well
constexpr std::int64_t kBlockBytes = 32768;       // half of the registers of 1024 threads
constexpr std::int64_t kBlockPacks = 8192;        // 8 accesses a thread
constexpr std::int64_t kQueueSliceBytes = 65536;  // of a row that one block of a cluster holds
constexpr std::int64_t kQueueBytes = 16 * kQueueSliceBytes;
constexpr std::int64_t kStreamSliceBytes =
    131072;  // of a row that one block of a cluster reads twice

std::int64_t bytes_of(const LayerNormCall& call) { return call.n * size_of(call.dtype); }

std::int64_t power_of_two_from(std::int64_t least) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
}

// A number of threads near `about` of which each has as many accesses as the others, at most 8;
// else `about`.
std::int64_t threads_near(std::int64_t about, std::int64_t packs) {
  const auto even = [packs](std::int64_t threads) {
    return packs % threads == 0 && packs / threads <= 8;
  };
  for (std::int64_t apart = 0; apart <= about / 2; apart += 32) {
    if (even(about + apart)) return about + apart;
    if (even(about - apart)) return about - apart;
  }
  return about;
}

std::int64_t grid_of_loop(const Config& config, std::int64_t resident, std::int64_t rows) {
  if (config["loop"] == 0) return rows;
  return std::max(
      {std::min(rows, resident), ceil_div(rows, config["rows_per_block"]), std::int64_t{1}});
}

// Threads that a multiprocessor has room for.
std::int64_t most_threads(int arch) {
  return arch == 86 || arch == 89 || arch == 120 ? 1536 : 2048;
}

// What is other than `config` in blocks for rows of at most 384 accesses, as measured (README.md).
Config for_short_rows(const RowForm& form, const RowFacts& row, bool has_factors, Config config) {
  const std::int64_t packs = row.packs();
  const bool few = packs <= 160;
  if (form.adaptive && size_of(row.dtype) == 2) {
    const std::int64_t held = few ? 1 : form.gated ? 2 : 3;  // accesses a thread
    const std::int64_t threads = std::max<std::int64_t>(128, whole_warps(ceil_div(packs, held)));
    config.set("threads", threads);
    config.set("blocks_per_sm", few ? 8 : 1024 / threads);
    if (!few) config.set("load_hint", kKeep);
  }
  if (form.fused && few) config.set("threads", 64);
  if (!form.centred && !form.fused && few && has_factors) {
    config.set("threads", packs > 128 ? whole_warps(packs) : 64);
    config.set("blocks_per_sm", packs > 128 ? 8 : 1);
    config.set("early", 2);
  }
  return config;
}

// How blocks take rows of more than 384 accesses, as measured (README.md).
struct BlockShape {
  std::int64_t threads, blocks_per_sm;  // for so many a multiprocessor's registers must be enough
  bool two_rows = false;                // each, one after the other
};
BlockShape block_shape(const RowForm& form, const RowFacts& row, int arch) {
  const std::int64_t packs = row.packs();
  const auto of = [](std::int64_t threads, std::int64_t most_blocks, std::int64_t resident = 1024) {
    return BlockShape{threads, std::clamp<std::int64_t>(resident / threads, 1, most_blocks)};
  };
  const auto holding = [&](std::int64_t held, std::int64_t most_blocks) {  // accesses a thread
    return of(std::min<std::int64_t>(1024, whole_warps(ceil_div(packs, held))), most_blocks);
  };
  const auto near = [&](std::int64_t about, std::int64_t most_blocks,
                        std::int64_t resident = 1024) {
    // Small accesses can be many: about 8 a thread, no more.
    const std::int64_t fewest = std::min<std::int64_t>(1024, whole_warps(packs / 8));
    return of(fewest > about ? fewest : threads_near(about, packs), most_blocks, resident);
  };
  if (form.adaptive) return holding(1, 2);
  if (form.fused) return near(!form.centred && packs > 640 ? 512 : 256, 2);
  if (form.centred) {
    BlockShape two = holding(4, packs > 512 ? 4 : 8);
    two.two_rows = true;
    // Other programs for two spill.
    const bool fits = arch == 90 && packs % two.threads == 0 && size_of(row.dtype) == 2;
    return fits ? two : near(256, packs > 1536 ? 2 : 3, 768);
  }
  if (packs > 512 && packs < 1024) return holding(4, 8);
  return near(256, 4, packs > 1024 ? 768 : 1024);
}

bool cluster_fits(const Config& config, const DeviceFacts& facts, std::int64_t packs) {
  const std::int64_t most = facts.arch == 120 ? 8 : 16;
  return config["cluster"] >= 2 && config["cluster"] <= most && packs >= config["cluster"];
}

}  // namespace

Refusal WarpRows::refusal(const LayerNormCall& call) {
  if (bytes_of(call) > kWarpBytes) {
    return refuse("serves rows of at most ", kWarpBytes,
                  " bytes, which the lanes of a warp hold, got ", bytes_of(call));
  }
  return RowNormKernel::refusal(call);
}

Config WarpRows::default_config(const DeviceFacts& facts) const {
  const std::int64_t packs = row().packs();
  std::int64_t lanes = std::min<std::int64_t>(32, power_of_two_from(ceil_div(packs, 2)));
  std::int64_t rows = 1, load_hint = form().fused ? kKeep : kStream;
  if (!form().centred && !form().fused && packs <= 32) {
    lanes = std::min<std::int64_t>(16, power_of_two_from(packs));
    rows = packs > 16 ? 2 : 4;
    if (packs >= 8) load_hint = hold_or(load_hint, facts.arch, row().access_bytes());
  }
  return {{"threads", packs > 16 || rows > 1 ? 64 : 128},
          {"lanes", lanes},
          {"rows", rows},
          {"early", ceil_div(packs, lanes) <= 4 ? 1 : 0},
          {"load_hint", load_hint},
          {"store_hint", kKeep}};
}

std::int64_t WarpRows::blocks(const Config& config, int /*sm_count*/, std::int64_t rows) const {
  return ceil_div(rows, config["threads"] / config["lanes"] * config["rows"]);
}

RowChoices WarpRows::choices(const DeviceFacts& /*facts*/) const {
  return {{"threads", {32, 64, 128, 256, 512}},
          {"lanes", {1, 2, 4, 8, 16, 32}},
          {"rows", {1, 2, 4}},
          {"early", {0, 1}},
          {"load_hint", {kKeep, kStream, kHold}},
          {"store_hint", {kKeep, kStream}}};
}

std::int64_t WarpRows::held_packs(const Config& config) const {
  return config["rows"] * ceil_div(row().packs(), config["lanes"]);
}

Refusal BlockRows::refusal(const LayerNormCall& call) {
  if (bytes_of(call) <= kWarpBytes) {
    return refuse("serves rows of more than ", kWarpBytes,
                  " bytes: a block for less leaves most threads idle, got ", bytes_of(call));
  }
  if (bytes_of(call) > kBlockBytes) {
    return refuse("serves rows of at most ", kBlockBytes,
                  " bytes, which a block holds in registers, got ", bytes_of(call));
  }
  if (Refusal base = RowNormKernel::refusal(call)) return base;
  if (call.n / vec_of(call) > kBlockPacks) {
    return refuse("serves rows of at most ", kBlockPacks, " accesses, 8 a thread, got ",
                  call.n / vec_of(call), " of ", vec_of(call), " elements");
  }
  return serves;
}

Config BlockRows::default_config(const DeviceFacts& facts) const {
  const std::int64_t packs = row().packs();
  Config config{{"threads", whole_warps(ceil_div(packs, form().gated ? 3 : 2))},
                {"loop", 0},
                {"early", 1},
                {"load_hint", form().fused ? kKeep : kStream},
                {"store_hint", kKeep},
                {"blocks_per_sm", 1},
                {"rows_per_block", 1}};
  if (packs <= 384) return for_short_rows(form(), row(), factors() > 0, std::move(config));
  const BlockShape shape = block_shape(form(), row(), facts.arch);
  config.set("threads", shape.threads);
  config.set("blocks_per_sm",
             std::min(shape.blocks_per_sm, most_threads(facts.arch) / shape.threads));
  // Measured with whole tiles: others have no registers for it.
  const bool whole = packs % shape.threads == 0;
  config.set("load_hint", whole ? hold_or(kKeep, facts.arch, row().access_bytes()) : kKeep);
  if (shape.two_rows) {
    config.set("loop", 2);
    config.set("rows_per_block", 2);
  }
  config.set("early", form().adaptive ? !form().gated : factors() > 0 ? 2 : 0);
  // What waits in shared memory must leave room for a second block, where there is to be one.
  const std::int64_t blocks = config["blocks_per_sm"];
  const std::int64_t room = facts.smem_budget / std::max<std::int64_t>(1, smem_bytes(config));
  if (room < std::min<std::int64_t>(2, blocks)) {
    config.set("early", 0);
  } else {
    config.set("blocks_per_sm", std::min(blocks, room));
  }
  return config;
}

std::int64_t BlockRows::blocks(const Config& config, int sm_count, std::int64_t rows) const {
  return grid_of_loop(config, sm_count * config["blocks_per_sm"], rows);
}

RowChoices BlockRows::choices(const DeviceFacts& facts) const {
  std::vector<std::int64_t> threads;
  // Where clusters take few of these rows, the threads stay as they are: sums are made by warps,
  // and a row has the same bits in every batch.
  const bool shared = row().bytes() >= ClusterRows::least_bytes(form()) &&
                      std::ranges::count(ClusterRows::supported_archs, facts.arch) > 0;
  for (const std::int64_t t : {64, 96, 128, 160, 256, 320, 512, 1024}) {
    if (!shared && ceil_div(row().packs(), t) <= 8 && t < 2 * whole_warps(row().packs()))
      threads.push_back(t);
  }
  RowChoices lists = {{"threads", std::move(threads)},
                      {"loop", {0, 2}},
                      {"early", {0, 1}},
                      {"load_hint", {kKeep, kStream, kHold}},
                      {"store_hint", {kKeep, kStream}},
                      {"blocks_per_sm", {1, 2, 3, 4, 8}},
                      {"rows_per_block", {1, 2, 4}}};
  if (factors() > 0) lists[2].second.push_back(2);
  return lists;
}

std::int64_t BlockRows::held_packs(const Config& config) const {
  return ceil_div(row().packs(), config["threads"]);
}

Config StreamRows::default_config(const DeviceFacts& /*facts*/) const {
  const bool longer = row().bytes() > 65536;
  return {{"threads", longer ? 1024 : 512},
          {"unroll", form().centred && !longer ? 2 : 4},
          {"early", 0},
          {"load_hint", kKeep},
          {"store_hint", form().fused ? 0 : 1}};
}

std::int64_t StreamRows::blocks(const Config& /*config*/, int /*sm_count*/,
                                std::int64_t rows) const {
  return rows;
}

RowChoices StreamRows::choices(const DeviceFacts& /*facts*/) const {
  return {{"threads", {256, 512, 1024}},
          {"unroll", {2, 4, 8}},
          {"load_hint", {kKeep, kStream}},
          {"store_hint", {kKeep, kStream}}};
}

Refusal ClusterRows::refusal_below(const LayerNormCall& call, std::int64_t least_bytes) {
  if (!call.few_rows)
    return refuse("serves at most ", LayerNormCall::kFewRows,
                  " rows: a block for each of more is faster");
  if (bytes_of(call) < least_bytes) {
    return refuse("serves rows of at least ", least_bytes,
                  " bytes: below, a cluster's barrier takes longer than it saves, got ",
                  bytes_of(call));
  }
  return BlockRows::refusal(call);
}

// The threads are the block's, so that each makes the same sums.
Config ClusterRows::default_config(const DeviceFacts& facts) const {
  Config config{{"cluster", 8},
                {"threads", block_shape(form(), row(), facts.arch).threads},
                {"early", factors() > 0 ? 2 : 0},
                {"load_hint", kKeep},
                {"store_hint", kKeep}};
  if (smem_bytes(config) > facts.smem_budget) config.set("early", 0);
  return config;
}

std::int64_t ClusterRows::threads(const Config& config) const {
  return ceil_div(config["threads"] / 32, config["cluster"]) * 32;
}

std::int64_t ClusterRows::blocks(const Config& config, int /*sm_count*/, std::int64_t rows) const {
  return config["cluster"] * rows;
}

RowChoices ClusterRows::choices(const DeviceFacts& /*facts*/) const {
  RowChoices lists = {{"cluster", {2, 4, 8}},
                      {"early", {0, 1}},
                      {"load_hint", {kKeep, kStream}},
                      {"store_hint", {kKeep, kStream}}};
  if (factors() > 0) lists[1].second.push_back(2);
  return lists;
}

std::int64_t ClusterRows::held_packs(const Config& config) const {
  return ceil_div(row().packs(), config["threads"]);
}

bool QueueRows::serves_rows_of(std::int64_t bytes) {
  return bytes > kBlockBytes && bytes <= kQueueBytes;
}

Refusal QueueRows::refusal(const LayerNormCall& call) {
  if (!serves_rows_of(bytes_of(call))) {
    return refuse("serves rows of more than ", kBlockBytes, " and at most ", kQueueBytes,
                  " bytes, which 16 blocks hold, got ", bytes_of(call));
  }
  if (Refusal base = RowNormKernel::refusal(call)) return base;
  return refuse_narrow(call);
}

std::vector<Program> QueueRows::programs(const DeviceFacts& facts, const Config& config) const {
  std::vector<Program> programs = RowNormKernel::programs(facts, config);
  programs[0].kernels.push_back(programs[0].kernels[0] + "_begin");
  return programs;
}

Config QueueRows::default_config(const DeviceFacts& facts) const {
  const std::int64_t cluster = power_of_two_from(ceil_div(row().bytes(), kQueueSliceBytes));
  return {{"cluster", cluster},
          {"threads", 512},
          {"blocks_per_sm", 1},
          {"early", 2},
          {"load_hint", hold_or(kKeep, facts.arch, row().access_bytes())},
          {"store_hint", kKeep}};
}

std::int64_t QueueRows::blocks(const Config& config, int sm_count, std::int64_t rows) const {
  const std::int64_t clusters = sm_count * config["blocks_per_sm"] / config["cluster"];
  return config["cluster"] * std::min(rows, std::max<std::int64_t>(1, clusters));
}

std::int64_t QueueRows::smem_bytes(const Config& config) const {
  return (1 + row().factors()) * held_packs(config) * config["threads"] * 16;
}

RowChoices QueueRows::choices(const DeviceFacts& /*facts*/) const {
  return {{"cluster", {1, 2, 4, 8, 16}},
          {"threads", {256, 512}},
          {"load_hint", {kKeep, kHold}},
          {"blocks_per_sm", {1, 2}}};
}

std::int64_t QueueRows::held_packs(const Config& config) const {
  return ceil_div(ceil_div(row().packs(), config["cluster"]), config["threads"]);
}

bool QueueRows::can_run(const Config& config, const DeviceFacts& facts) const {
  constexpr std::int64_t shared = 2048;  // at most, beside what is dynamic: QueueShared, alignment
  return held_packs(config) <= 16 && row().packs() >= config["cluster"] &&
         (smem_bytes(config) + shared) * config["blocks_per_sm"] <= facts.smem_budget;
}

Refusal ClusterStreamRows::refusal(const LayerNormCall& call) {
  if (bytes_of(call) <= kStreamSliceBytes) {
    return refuse("serves rows of more than ", kStreamSliceBytes,
                  " bytes: one block reads less as fast, got ", bytes_of(call));
  }
  return RowNormKernel::refusal(call);
}

Config ClusterStreamRows::default_config(const DeviceFacts& facts) const {
  const std::int64_t bytes = row().bytes();
  Config config{
      {"cluster", std::min<std::int64_t>(8, power_of_two_from(ceil_div(bytes, kStreamSliceBytes)))},
      {"threads", facts.arch == 120 ? 512 : 1024},
      {"unroll", form().adaptive && bytes <= 4 * kStreamSliceBytes ? 2 : 4},
      {"early", 0},
      {"load_hint", kKeep},
      {"store_hint", form().fused ? 0 : 1},
      {"blocks_per_sm", 1}};
  if (form().fused || form().adaptive || facts.arch == 120 || bytes <= 2 * kStreamSliceBytes)
    return config;
  // Longer rows: smaller blocks, two a multiprocessor, of which one waits while the other reads.
  const bool longest = bytes > 8 * kStreamSliceBytes;
  config.set("cluster", longest ? 16 : 8);
  config.set("threads", longest ? 512 : 256);
  config.set("blocks_per_sm", 2);
  return config;
}

std::int64_t ClusterStreamRows::blocks(const Config& config, int /*sm_count*/,
                                       std::int64_t rows) const {
  return config["cluster"] * rows;
}

RowChoices ClusterStreamRows::choices(const DeviceFacts& /*facts*/) const {
  return {
      {"cluster", {2, 4, 8, 16}},      {"threads", {256, 512, 1024}},    {"unroll", {2, 4, 8}},
      {"load_hint", {kKeep, kStream}}, {"store_hint", {kKeep, kStream}}, {"blocks_per_sm", {1, 2}}};
}

bool ClusterStreamRows::can_run(const Config& config, const DeviceFacts& facts) const {
  return cluster_fits(config, facts, row().packs()) && RowNormKernel::can_run(config, facts);
}

}  // namespace kiln
