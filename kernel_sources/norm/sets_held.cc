#include "sets_held.h"

#include <absl/status/statusor.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace kiln {
namespace {

constexpr std::int64_t kPackBytes = 16;
constexpr std::int64_t kMostSlots = 64;
constexpr std::int64_t kServiceThreads = 128;  // warps that copy, publish and gather
constexpr std::int64_t kStream = 1, kKeep = 0;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t part_packs(const Config& config) { return config["threads"] * config["items"]; }
std::int64_t slot_bytes(const Config& config) { return part_packs(config) * kPackBytes; }

// Parts of a set for each lane of the warp that gathers them: 8, where its registers hold more and
// the set needs it, more.
std::int64_t share(std::int64_t threads, std::int64_t items, std::int64_t parts) {
  if (threads > 256 || parts <= 256) return 8;
  return items > 4 ? 12 : 16;
}

}  // namespace

std::vector<Config> held_configs(const SetsFacts& facts, std::int64_t packs,
                                 const DeviceFacts& device) {
  std::vector<Config> configs;
  if (facts.vec * size_of(facts.dtype) != kPackBytes) return configs;
  if (device.arch != 90 && device.arch != 100) return configs;
  for (const auto& [threads, items, hint] : {std::array<std::int64_t, 3>{256, 8, kKeep},
                                             {256, 8, kStream},
                                             {256, 4, kKeep},
                                             {256, 4, kStream},
                                             {256, 2, kStream},
                                             {128, 8, kStream},
                                             {192, 8, kStream},
                                             {384, 2, kStream},
                                             {384, 4, kStream},
                                             {448, 2, kStream}}) {
    Config config = {{"threads", threads}, {"items", items}, {"store_hint", hint}};
    // Beside a slot: moments of each warp, a result, barriers; and what aligning the ring may take.
    const std::int64_t beside = threads / 32 * 16 + 80;
    const std::int64_t slots =
        std::min((device.smem_budget - 128) / (slot_bytes(config) + beside), kMostSlots);
    // The rings must hold the set that is written, and should hold the next.
    const std::int64_t parts = ceil_div(packs, part_packs(config));
    config.set("slots", slots);
    config.set("share", share(threads, items, parts));
    if (parts <= 32 * config["share"] && 2 * parts <= slots * device.sm_count)
      configs.push_back(config);
  }
  return configs;
}

Program held_program(const SetsFacts& facts, const Config& config) {
  Program program = sets_program("sets_held", facts, config);
  program.headers.push_back("kernel_sources/device/bulk.cuh");
  program.kernels = {"sets_held", "sets_held_begin"};
  program.constants.push_back({"ITEMS", config["items"]});
  program.constants.push_back({"SLOTS", config["slots"]});
  program.constants.push_back({"SHARE", config["share"]});
  program.smem_bytes = config["slots"] * slot_bytes(config);
  return program;
}

HeldPlan held_plan(const Config& config, std::int64_t packs, std::int64_t sets, void* workspace) {
  const std::int64_t parts = ceil_div(packs, part_packs(config));
  HeldPlan plan;
  plan.moments = workspace;
  plan.taken = static_cast<std::byte*>(workspace) + sets * parts * 16;
  plan.parts = static_cast<std::uint32_t>(parts);
  plan.total = static_cast<std::uint32_t>(sets * parts);
  return plan;
}

absl::StatusOr<LaunchShape> held_shape(const Config& config, const HeldPlan& plan,
                                       std::int64_t sm_count) {
  LaunchShape shape;
  shape.grid[0] = std::min(plan.total, static_cast<std::uint32_t>(sm_count));
  if (config["slots"] * shape.grid[0] < plan.parts)
    return absl::FailedPreconditionError(absl::StrFormat(
        "the rings of all blocks must have a slot for each part of a set: got %d slots in each of "
        "%d blocks for %d parts",
        config["slots"], shape.grid[0], plan.parts));
  shape.block[0] = static_cast<std::uint32_t>(2 * config["threads"] + kServiceThreads);
  shape.smem_bytes = static_cast<std::uint32_t>(config["slots"] * slot_bytes(config));
  shape.cooperative = true;
  return shape;
}

}  // namespace kiln
