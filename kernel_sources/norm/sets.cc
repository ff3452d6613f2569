#include "sets.h"

#include "hints.h"
#include "sets_held.h"

namespace kiln {
namespace {

constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t whole_warps(std::int64_t threads) {
  return std::clamp<std::int64_t>(ceil_div(threads, 32) * 32, 32, 1024);
}

// What is written is not read soon: it should not push out of L2 what will be (kStream).
Config queue_config(std::int64_t threads, std::int64_t unroll) {
  return {{"threads", threads},
          {"unroll", unroll},
          {"blocks_per_sm", 1024 / threads},
          {"store_hint", kStream}};
}

}  // namespace

Program sets_program(const char* name, const SetsFacts& facts, const Config& config) {
  const std::string folder = "kernel_sources/norm/";
  Program program{
      .source = folder + name + ".cu",
      .headers = {"kernel_sources/device/dtype.cuh", "kernel_sources/device/memory.cuh",
                  "kernel_sources/device/reduce.cuh", folder + "row.cuh", folder + "sets.cuh"},
      .kernels = {name},
      .constants = {{"DTYPE", facts.dtype},
                    {"FACTOR", facts.factor},
                    {"VEC", std::int64_t{facts.vec}},
                    {"PER_PIECE", facts.per_piece},
                    {"CONTIGUOUS", facts.contiguous},
                    {"SMALL", facts.small},
                    {"HAS_WEIGHT", facts.has_weight},
                    {"HAS_BIAS", facts.has_bias},
                    {"HAS_RUNNING", facts.has_running},
                    {"HAS_STATISTICS", facts.has_statistics},
                    {"THREADS", config["threads"]},
                    {"STORE_HINT", config["store_hint"]}}};
  return program;
}

SetsCall sets_call(const SetsShape& shape, int vec, double eps, double momentum) {
  SetsCall call;
  call.sets = shape.sets;
  call.pieces = shape.pieces;
  call.piece = shape.piece / vec;
  call.stride = shape.stride / vec;
  call.set_stride = shape.set_stride / vec;
  call.groups = shape.groups;
  const auto n = static_cast<double>(shape.count());
  call.inverse_count = static_cast<float>(1 / n);
  call.unbias = static_cast<float>(n / std::max(n - 1, 1.0));
  call.eps = static_cast<float>(eps);
  call.momentum = static_cast<float>(momentum);
  return call;
}

int access_width(DType dtype, std::int64_t piece, int align) {
  int vec = std::max(1, std::min(16, align) / size_of(dtype));
  while (vec > 1 && piece % vec != 0) vec /= 2;
  return vec;
}

Config WideSets::with_threads(std::int64_t threads) const {
  threads = whole_warps(threads);
  const std::int64_t items = ceil_div(packs_, threads);
  // A warp alone needs no barrier: several share a block, so that a multiprocessor has enough.
  return {{"threads", threads},
          {"items", items},
          {"sets", threads > 32 ? 1
                   : items > 4  ? 4
                                : 8},
          {"store_hint", kKeep}};
}

Config WideSets::default_config(const DeviceFacts&) const {
  // More than 4 accesses a lane were measured with sets of one run of memory: instances.
  const bool one_run = facts_.contiguous && !facts_.per_piece;
  if (packs_ <= (one_run ? 256 : 128)) return with_threads(32);
  if (packs_ <= 256) return with_threads(ceil_div(packs_, 2));
  // Blocks of about 512 threads: smaller ones wait longer for memory, larger ones leave a
  // multiprocessor with one or two, which all wait at once.
  const std::int64_t items = std::min<std::int64_t>(ceil_div(packs_, 512), 8);
  return with_threads(ceil_div(packs_, items));
}

std::vector<Config> WideSets::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t items : {1, 2, 3, 4, 6, 8, 16}) {
    Config config = with_threads(ceil_div(packs_, items));
    if (config["items"] > (config["threads"] == 32 ? 16 : 8)) continue;
    for (std::int64_t sets : {std::int64_t{1}, config["sets"]}) {
      config.set("sets", sets);
      if (std::find(configs.begin(), configs.end(), config) == configs.end())
        configs.push_back(config);
    }
  }
  return configs;
}

std::vector<Program> WideSets::programs(const Config& config) const {
  Program program = sets_program("sets_wide", facts_, config);
  program.constants.push_back({"PACKS", packs_});
  program.constants.push_back({"ITEMS", config["items"]});
  program.constants.push_back({"SETS", config["sets"]});
  return {program};
}

LaunchShape WideSets::shape(const Config& config, std::int64_t sets) const {
  const std::int64_t blocks = ceil_div(sets, config["sets"]);
  return {.grid = {static_cast<std::uint32_t>(std::min(blocks, kMostBlocks)), 1, 1},
          .block = {static_cast<std::uint32_t>(config["threads"]),
                    static_cast<std::uint32_t>(config["sets"]), 1}};
}

Config StreamSets::default_config(const DeviceFacts&) const {
  return {{"threads", whole_warps(std::min<std::int64_t>(ceil_div(packs_, 4), 512))},
          {"unroll", 4},
          {"store_hint", kStream}};
}

std::vector<Config> StreamSets::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t threads : {256, 512, 1024}) {
    for (std::int64_t unroll : {2, 4}) {
      configs.push_back({{"threads", threads}, {"unroll", unroll}, {"store_hint", kStream}});
    }
  }
  return configs;
}

std::vector<Program> StreamSets::programs(const Config& config) const {
  Program program = sets_program("sets_stream", facts_, config);
  program.constants.push_back({"UNROLL", config["unroll"]});
  return {program};
}

LaunchShape StreamSets::shape(const Config& config, std::int64_t sets) const {
  return {.grid = {static_cast<std::uint32_t>(std::min(sets, kMostBlocks)), 1, 1},
          .block = {static_cast<std::uint32_t>(config["threads"]), 1, 1}};
}

std::size_t SplitSets::workspace_bytes(std::int64_t sets, std::int64_t count) {
  const std::int64_t parts = count / kSmallestPart + 1;
  // Moments and statistics of 16 bytes, a counter of 4 for each set and one for the queue.
  return static_cast<std::size_t>(sets * parts * 16 + sets * 16 + (sets + 1) * 4);
}

Config SplitSets::default_config(const DeviceFacts& facts) const {
  const std::vector<Config> held = held_configs(facts_, packs_, facts);
  if (!held.empty()) return held.front();
  return queue_config(1024, 6);
}

std::vector<Config> SplitSets::autotune_configs(const DeviceFacts& facts) const {
  std::vector<Config> configs = held_configs(facts_, packs_, facts);
  for (std::int64_t threads : {512, 1024}) {
    for (std::int64_t unroll : {4, 6}) configs.push_back(queue_config(threads, unroll));
  }
  return configs;
}

std::vector<Program> SplitSets::programs(const Config& config) const {
  if (config["slots"] > 0) return {held_program(facts_, config)};
  Program program = sets_program("sets_split", facts_, config);
  program.kernels = {"sets_split", "sets_split_begin"};
  program.constants.push_back({"UNROLL", config["unroll"]});
  program.constants.push_back({"BLOCKS_PER_SM", config["blocks_per_sm"]});
  return {program};
}

SplitPlan SplitSets::plan(const Config& config, std::int64_t sets, std::int64_t blocks,
                          void* workspace) const {
  const std::int64_t parts = ceil_div(packs_, config["threads"] * config["unroll"]);
  SplitPlan plan;
  plan.sets = static_cast<std::uint32_t>(sets);
  plan.parts = static_cast<std::uint32_t>(parts);
  // As many tasks between a set's two reads as there are blocks at work: few enough to find it in
  // L2, enough that nobody waits for its statistics.
  plan.lag =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>((blocks + parts) / (2 * parts), 1, sets));
  auto* at = static_cast<std::byte*>(workspace);
  plan.moments = at;
  plan.statistics = at + sets * parts * 16;
  plan.taken = at + sets * parts * 16 + sets * 16;
  plan.done = at + sets * parts * 16 + sets * 16 + 4;
  return plan;
}

}  // namespace kiln
