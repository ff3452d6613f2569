#include "row_spread.h"

#include "hints.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln {
namespace {

constexpr std::int64_t kLeastBytes = 1 << 20;  // up to here a cluster's blocks hold a row
constexpr std::int64_t kMostBytes = 1 << 22;   // a ring of few slots is slower than two reads
constexpr std::int64_t kPackBytes = 16;
constexpr std::int64_t kFewestSlots = 4;
// Slices begin at multiples of 1 KB in memory.
constexpr std::int64_t kPartStep = 64;

// Of the warps that copy, publish and store.
constexpr std::int64_t kServiceThreads = 96;

}  // namespace

bool SpreadRows::serves_rows_of(std::int64_t bytes) {
  return bytes > kLeastBytes && bytes <= kMostBytes;
}

Refusal SpreadRows::refusal(const LayerNormCall& call) {
  const std::int64_t bytes = call.n * size_of(call.dtype);
  if (!serves_rows_of(bytes)) {
    return refuse("serves rows of more than ", kLeastBytes, " and at most ", kMostBytes,
                  " bytes, got ", bytes);
  }
  if (Refusal base = ClusterStreamRows::refusal(call)) return base;
  return refuse_narrow(call);
}

std::int64_t SpreadRows::least_part(const DeviceFacts& facts) const {
  const std::int64_t blocks = std::clamp<std::int64_t>(facts.sm_count, 1, kMostSlices);
  return ceil_div(ceil_div(row().packs(), blocks), kPartStep) * kPartStep;
}

std::optional<Config> SpreadRows::config_of(const DeviceFacts& facts, std::int64_t part,
                                            std::int64_t threads, std::int64_t unroll,
                                            std::int64_t gatherers) const {
  // Beside a slot: moments of each warp, a result, barriers; and what alignment may take.
  const std::int64_t beside = threads / 32 * 16 + 56;
  const std::int64_t ring = facts.smem_budget - 256 - row().factors() * part * kPackBytes;
  const std::int64_t slots = std::min(ring / (part * kPackBytes + beside), kMostSlots);
  if (slots < std::max(kFewestSlots, gatherers) ||
      2 * threads + kServiceThreads + 32 * gatherers > 1024)
    return std::nullopt;
  return Config{{"threads", threads},
                {"part", part},
                {"slots", slots},
                {"unroll", unroll},
                {"gatherers", gatherers},
                {"early", 2},
                {"load_hint", hold_or(kKeep, facts.arch, kPackBytes)},
                {"store_hint", kKeep},
                {"blocks_per_sm", 1}};
}

Config SpreadRows::default_config(const DeviceFacts& facts) const {
  // A warp gathers a row in 1.8 us (H200), in which memory reads and writes 4 MB.
  const std::int64_t gatherers = row().bytes() < (std::int64_t{1} << 21) ? 4 : 2;
  const std::optional<Config> spread = config_of(facts, least_part(facts), 256, 1, gatherers);
  return spread ? *spread : ClusterStreamRows::default_config(facts);
}

std::vector<Config> SpreadRows::autotune_configs(const DeviceFacts& facts) const {
  std::vector<Config> configs = {default_config(facts)};
  if (configs[0]["slots"] == 0) return ClusterStreamRows::autotune_configs(facts);
  configs.push_back(configs[0]);
  configs[1].set("load_hint", other_hold(configs[0]["load_hint"]));
  const std::int64_t least = least_part(facts);
  for (const std::int64_t part : {least, least + kPartStep, least + 2 * kPartStep}) {
    for (const std::int64_t threads : {128, 256, 384}) {
      for (const std::int64_t unroll : {1, 2, 4}) {
        for (const std::int64_t gatherers : {2, 3, 4}) {
          const auto one = config_of(facts, part, threads, unroll, gatherers);
          if (one && *one != configs[0]) configs.push_back(*one);
        }
      }
    }
  }
  return configs;
}

std::vector<Program> SpreadRows::programs(const DeviceFacts& facts, const Config& config) const {
  if (config["slots"] == 0) return ClusterStreamRows::programs(facts, config);
  Program program =
      program_of({"_spread",
                  "row_spread",
                  {"kernel_sources/device/bulk.cuh", "kernel_sources/norm/published_moments.cuh"}},
                 config);
  program.kernels.push_back(program.kernels[0] + "_begin");
  return {std::move(program)};
}

std::int64_t SpreadRows::smem_bytes(const Config& config) const {
  return (config["slots"] + row().factors()) * config["part"] * kPackBytes;
}

absl::StatusOr<LaunchShape> SpreadRows::spread_shape(const Config& config, int sm_count) const {
  const std::int64_t blocks = slices(config);
  if (blocks > sm_count || blocks > kMostSlices) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s_spread: each slice of a row must have a multiprocessor of its own: got %d slices for "
        "%d multiprocessors",
        std::string(form().name), blocks, sm_count));
  }
  LaunchShape shape;
  shape.grid[0] = static_cast<std::uint32_t>(blocks);
  shape.block[0] = static_cast<std::uint32_t>(2 * config["threads"] + kServiceThreads +
                                              32 * config["gatherers"]);
  shape.smem_bytes = static_cast<std::uint32_t>(smem_bytes(config));
  shape.cooperative = true;
  return shape;
}

}  // namespace kiln
