#include "sets_held.h"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::int64_t kPackBytes = 16;
constexpr std::int64_t kMostMembers = 256;   // eight a lane of the warp that reads their moments
constexpr std::int64_t kReserved = 1024;     // shared memory that the system takes of each block
constexpr std::int64_t kStatic = 2048;       // static shared memory, at most

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t chunk_packs(const Config& config) { return config["threads"] * config["unroll"]; }

// Chunks that the ring of a block has room for.
std::int64_t ring_chunks(const Config& config, const DeviceFacts& device) {
  const std::int64_t bytes =
      (device.smem_budget + kReserved) / config["blocks_per_sm"] - kReserved - kStatic;
  return std::min<std::int64_t>(bytes / (chunk_packs(config) * kPackBytes), 64);
}

// Whether the ring holds the sets in work and, beyond them, the next one.
bool fits(const Config& config, std::int64_t packs, std::int64_t team) {
  const std::int64_t chunks = ceil_div(ceil_div(packs, team), chunk_packs(config));
  return (config["lag"] + 2) * chunks <= config["chunks"];
}

// Sizes of a team in which at most one block of 32 stays idle: those that leave the fewest first, then
// the smallest.
std::vector<std::int64_t> teams(const Config& config, std::int64_t packs, std::int64_t elements,
                                const DeviceFacts& device) {
  const std::int64_t blocks = device.sm_count * config["blocks_per_sm"];
  const std::int64_t most = std::min({blocks, kMostMembers, elements / SplitSets::kSmallestPart});
  std::vector<std::int64_t> sizes;
  for (std::int64_t team = 1; team <= most; ++team) {
    if (blocks % team * 32 <= blocks && fits(config, packs, team)) sizes.push_back(team);
  }
  std::stable_sort(sizes.begin(), sizes.end(), [&](std::int64_t a, std::int64_t b) {
    return blocks % a < blocks % b;
  });
  return sizes;
}

}  // namespace

std::vector<Config> held_configs(const SetsFacts& facts, std::int64_t packs,
                                 const DeviceFacts& device) {
  std::vector<Config> configs;
  if (facts.vec * size_of(facts.dtype) != kPackBytes) return configs;
  if (device.arch != 90 && device.arch != 100) return configs;
  struct Choice {
    std::int64_t threads, unroll, blocks, lag;
  };
  for (const Choice& choice : {Choice{512, 2, 1, 1}, Choice{512, 1, 1, 1}, Choice{512, 1, 1, 2},
                               Choice{512, 1, 2, 1}, Choice{256, 2, 2, 1}, Choice{256, 2, 3, 1},
                               Choice{896, 1, 1, 1}, Choice{256, 2, 2, 2}}) {
    Config config{{"threads", choice.threads},
                  {"unroll", choice.unroll},
                  {"blocks_per_sm", choice.blocks},
                  {"lag", choice.lag},
                  {"store_hint", 1}};
    config.set("chunks", ring_chunks(config, device));
    if (config["chunks"] < 2) continue;
    const auto sizes = teams(config, packs, packs * facts.vec, device);
    for (std::size_t i = 0; i < std::min<std::size_t>(sizes.size(), 5); ++i) {
      config.set("team", sizes[i]);
      configs.push_back(config);
    }
  }
  return configs;
}

Program held_program(const SetsFacts& facts, const Config& config) {
  Program program = sets_program("sets_held", facts, config);
  program.headers.push_back("kernel_sources/device/bulk.cuh");
  program.kernels = {"sets_held", "sets_held_begin"};
  program.constants.push_back({"UNROLL", config["unroll"]});
  program.constants.push_back({"CHUNKS", config["chunks"]});
  program.constants.push_back({"LAG", config["lag"]});
  program.constants.push_back({"BLOCKS_PER_SM", config["blocks_per_sm"]});
  program.smem_bytes = config["chunks"] * chunk_packs(config) * kPackBytes;
  return program;
}

HeldPlan held_plan(const Config& config, std::int64_t packs, void* workspace) {
  HeldPlan plan;
  plan.moments = workspace;
  plan.team = static_cast<std::uint32_t>(config["team"]);
  plan.slice = ceil_div(packs, config["team"]);
  plan.members = static_cast<std::uint32_t>(ceil_div(packs, plan.slice));
  return plan;
}

LaunchShape held_shape(const Config& config, std::int64_t sets, std::int64_t sm_count) {
  const std::int64_t teams =
      std::min(sets, sm_count * config["blocks_per_sm"] / config["team"]);
  LaunchShape shape;
  shape.grid[0] = static_cast<std::uint32_t>(teams * config["team"]);
  shape.block[0] = static_cast<std::uint32_t>(config["threads"] + 64);
  shape.smem_bytes =
      static_cast<std::uint32_t>(config["chunks"] * chunk_packs(config) * kPackBytes);
  shape.cooperative = true;
  return shape;
}

}  // namespace kiln
