#include "sets_held.h"

#include "hints.h"

#include <absl/status/statusor.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace kiln {
namespace {

constexpr std::int64_t kPackBytes = 16;
constexpr std::int64_t kMostSlots = 64;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t part_packs(const Config& config) { return config["threads"] * config["items"]; }
std::int64_t slot_bytes(const Config& config) { return part_packs(config) * kPackBytes; }

// Of the warps that copy, publish and gather, and of the one that stores.
std::int64_t service_threads(const Config& config) { return 96 + 32 * config["storer"]; }

}  // namespace

std::vector<Config> held_configs(const SetsFacts& facts, std::int64_t packs,
                                 const DeviceFacts& device) {
  std::vector<Config> configs;
  if (facts.vec * size_of(facts.dtype) != kPackBytes) return configs;
  if (device.arch != 90 && device.arch != 100) return configs;
  // Threads of each group, packs of a part for each of them and at once, whether a warp stores, and
  // how parts are loaded and, by threads, stored.
  const std::int64_t load = hold_or(kKeep, device.arch, kPackBytes);
  for (const auto& [threads, items, unroll, storer, load_hint, store_hint] :
       {std::array<std::int64_t, 6>{256, 8, 1, 1, load, kKeep},
        {256, 8, 1, 1, other_hold(load), kKeep},
        {256, 8, 2, 1, load, kKeep},
        {256, 8, 4, 1, load, kKeep},
        {256, 8, 8, 1, load, kKeep},
        {256, 4, 4, 1, load, kKeep},
        {384, 4, 4, 1, load, kKeep},
        {192, 8, 4, 1, load, kKeep},
        {128, 8, 4, 1, load, kKeep},
        {416, 4, 4, 1, load, kKeep},
        {256, 8, 4, 0, kKeep, kKeep},
        {256, 8, 4, 0, kKeep, kStream},
        {256, 4, 4, 0, kKeep, kKeep},
        {384, 4, 4, 0, kKeep, kKeep}}) {
    Config config = {{"threads", threads}, {"items", items},         {"unroll", unroll},
                     {"storer", storer},   {"load_hint", load_hint}, {"store_hint", store_hint}};
    // Beside a slot: moments of each warp, a result, barriers; and what aligning the ring may take.
    const std::int64_t beside = threads / 32 * 16 + 80;
    const std::int64_t slots =
        std::min((device.smem_budget - 128) / (slot_bytes(config) + beside), kMostSlots);
    // The rings must hold the set that is written, and should hold the next.
    const std::int64_t parts = ceil_div(packs, part_packs(config));
    config.set("slots", slots);
    if (2 * parts <= slots * device.sm_count) configs.push_back(config);
  }
  return configs;
}

Program held_program(const SetsFacts& facts, const Config& config) {
  Program program = sets_program("sets_held", facts, config);
  program.headers.push_back("kernel_sources/device/bulk.cuh");
  program.headers.push_back("kernel_sources/norm/published_moments.cuh");
  program.kernels = {"sets_held", "sets_held_begin"};
  program.constants.push_back({"ITEMS", config["items"]});
  program.constants.push_back({"SLOTS", config["slots"]});
  program.constants.push_back({"UNROLL", config["unroll"]});
  program.constants.push_back({"STORER", config["storer"]});
  program.constants.push_back({"LOAD_HINT", config["load_hint"]});
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
  shape.block[0] = static_cast<std::uint32_t>(2 * config["threads"] + service_threads(config));
  shape.smem_bytes = static_cast<std::uint32_t>(config["slots"] * slot_bytes(config));
  shape.cooperative = true;
  return shape;
}

}  // namespace kiln
