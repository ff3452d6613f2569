#include "sets_held.h"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::int64_t kPackBytes = 16;
// Five a lane of the warp that reads their moments: no sm_90 or sm_100 has more multiprocessors.
constexpr std::int64_t kMostMembers = 160;
constexpr std::int64_t kMostChunks = 64;
constexpr std::int64_t kStatic = 2048;     // static shared memory, at most
constexpr std::int64_t kMoreThreads = 64;  // the warps that copy and that make statistics
constexpr std::size_t kTeams = 3;          // sizes to try

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Sizes of a team, the best first: the smaller, the fewer blocks wait for each other. A ring must
// hold the set that is added up and the one before, which is not given yet, and should hold the
// next. At most one block of 32 may stay idle.
std::vector<std::int64_t> teams(std::int64_t threads, std::int64_t chunks, std::int64_t packs,
                                std::int64_t elements, std::int64_t blocks) {
  const std::int64_t most = std::min({blocks, kMostMembers, elements / SplitSets::kSmallestPart});
  std::vector<std::int64_t> sizes;
  for (std::int64_t team = 1; team <= most && sizes.size() < kTeams; ++team) {
    const std::int64_t slice_chunks = ceil_div(ceil_div(packs, team), threads);
    if (blocks % team * 32 <= blocks && 3 * slice_chunks <= chunks) sizes.push_back(team);
  }
  return sizes;
}

}  // namespace

std::vector<Config> held_configs(const SetsFacts& facts, std::int64_t packs,
                                 const DeviceFacts& device) {
  std::vector<Config> configs;
  if (facts.vec * size_of(facts.dtype) != kPackBytes) return configs;
  if (device.arch != 90 && device.arch != 100) return configs;
  for (const std::int64_t threads : {512, 896}) {
    const std::int64_t chunks =
        std::min((device.smem_budget - kStatic) / (threads * kPackBytes), kMostChunks);
    for (const std::int64_t team :
         teams(threads, chunks, packs, packs * facts.vec, device.sm_count)) {
      configs.push_back(
          {{"threads", threads}, {"team", team}, {"chunks", chunks}, {"store_hint", 1}});
    }
  }
  return configs;
}

Program held_program(const SetsFacts& facts, const Config& config) {
  Program program = sets_program("sets_held", facts, config);
  program.headers.push_back("kernel_sources/device/bulk.cuh");
  program.kernels = {"sets_held", "sets_held_begin"};
  program.constants.push_back({"CHUNKS", config["chunks"]});
  program.smem_bytes = config["chunks"] * config["threads"] * kPackBytes;
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
  const std::int64_t teams = std::min(sets, sm_count / config["team"]);
  LaunchShape shape;
  shape.grid[0] = static_cast<std::uint32_t>(teams * config["team"]);
  shape.block[0] = static_cast<std::uint32_t>(config["threads"] + kMoreThreads);
  shape.smem_bytes = static_cast<std::uint32_t>(config["chunks"] * config["threads"] * kPackBytes);
  shape.cooperative = true;
  return shape;
}

}  // namespace kiln
