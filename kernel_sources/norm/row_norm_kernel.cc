#include "row_norm_kernel.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln {
namespace {

constexpr std::int64_t kMaxRow = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxBlocks = std::numeric_limits<std::int32_t>::max();  // of grid.x

constexpr std::string_view kFolder = "kernel_sources/norm/";

std::string upper(std::string name) {
  for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

// Rows a block and the loop over them go together: one is nothing without the other.
void tidy(Config& config) {
  if (config["rows_per_block"] == 0) return;  // a placement without the choice
  if (config["loop"] == 0) {
    config.set("rows_per_block", 1);
  } else if (config["rows_per_block"] == 1) {
    config.set("rows_per_block", 2);
  }
}

void add_new(std::vector<Config>& configs, Config config) {
  if (std::find(configs.begin(), configs.end(), config) == configs.end())
    configs.push_back(std::move(config));
}

}  // namespace

int vec_of(const LayerNormCall& call) {
  const std::int64_t elements = std::min(call.align, 16) / size_of(call.dtype);
  std::int64_t vec = 1;
  while (vec * 2 <= elements && call.n % (vec * 2) == 0) vec *= 2;
  return static_cast<int>(vec);
}

Refusal refuse_narrow(const LayerNormCall& call) {
  const int bytes = vec_of(call) * size_of(call.dtype);
  if (bytes == 16) return serves;
  return refuse("serves accesses of 16 bytes, which copies bring, got ", bytes);
}

Refusal RowNormKernel::refusal(const LayerNormCall& call) {
  if (call.dtype != DType::float16 && call.dtype != DType::bfloat16 &&
      call.dtype != DType::float32) {
    return refuse("serves float16, bfloat16 and float32, got ", call.dtype);
  }
  if (call.n < 1) return refuse("serves rows of at least 1 element, got ", call.n);
  if (call.n > kMaxRow)
    return refuse("serves rows of at most ", kMaxRow,
                  " elements: positions in a row are 32-bit, got ", call.n);
  if (!std::isfinite(call.eps) || call.eps < 0)
    return refuse("serves a finite eps of at least 0, got ", call.eps);
  if (call.align < size_of(call.dtype)) {
    return refuse("serves tensors whose addresses are multiples of an element (",
                  size_of(call.dtype), " bytes): the device loads no element otherwise, got ",
                  call.align);
  }
  return serves;
}

std::vector<Program> RowNormKernel::programs(const DeviceFacts& /*facts*/,
                                             const Config& config) const {
  return {program_of(placement_, config)};
}

Program RowNormKernel::program_of(const Placement& placement, const Config& config) const {
  const std::string folder(kFolder);
  const std::string kernel = std::string(form_.name) + std::string(placement.suffix);
  Program program{.source = folder + kernel + ".cu",
                  .headers = {"kernel_sources/device/dtype.cuh", "kernel_sources/device/memory.cuh",
                              "kernel_sources/device/reduce.cuh", folder + "constants.cuh",
                              folder + "row.cuh", folder + std::string(placement.header) + ".cuh"},
                  .kernels = {kernel},
                  .constants = {{"DTYPE", facts_.dtype},
                                {"ROW_SIZE", facts_.n},
                                {"EPS", facts_.eps},
                                {"VEC", std::int64_t{facts_.vec}},
                                {"HAS_WEIGHT", std::int64_t{facts_.has_weight}},
                                {"HAS_BIAS", std::int64_t{facts_.has_bias}}},
                  // Sums and results are what the source says, in every program: a product that is
                  // contracted with a sum in one and not in another changes a row's bits.
                  .options = {"--fmad=false"},
                  .smem_bytes = smem_bytes(config)};
  for (const std::string_view header : placement.needs)
    if (!header.empty()) program.headers.emplace_back(header);
  for (const auto& [name, value] : config.values()) {
    if (name != "rows_per_block") program.constants.push_back({upper(name), value});
  }
  return program;
}

std::vector<Config> RowNormKernel::autotune_configs(const DeviceFacts& facts) const {
  const Config base = default_config(facts);
  const auto lists = choices(facts);
  std::vector<Config> configs = {base};
  const auto add = [&](Config config) {
    tidy(config);
    if (can_run(config, facts)) add_new(configs, std::move(config));
  };
  for (const auto& [name, values] : lists) {
    for (const std::int64_t value : values) {
      Config one = base;
      one.set(name, value);
      add(one);
      // What the first list holds acts on all others, so they are tried with each of its values.
      for (const std::int64_t first : lists.front().second) {
        Config two = one;
        if (name != lists.front().first) two.set(lists.front().first, first);
        add(two);
      }
    }
  }
  return configs;
}

bool RowNormKernel::can_run(const Config& config, const DeviceFacts& facts) const {
  return held_packs(config) <= 32 && smem_bytes(config) <= facts.smem_budget;
}

std::int64_t RowNormKernel::factor_bytes(const Config& config) const {
  if (config["early"] != 2) return 0;
  return factors() * held_packs(config) * threads(config) * facts_.vec * size_of(facts_.dtype);
}

absl::StatusOr<LaunchShape> RowNormKernel::launch_shape(const Loaded& here,
                                                        std::int64_t rows) const {
  const std::int64_t grid =
      rows == 0 ? 0 : blocks(here.config, std::max(1, here.facts.sm_count), rows);
  if (grid > kMaxBlocks) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s%s: a launch must have at most %d blocks: got %d rows, which take %d; split the call",
        std::string(form_.name), std::string(placement_.suffix), kMaxBlocks, rows, grid));
  }
  LaunchShape shape;
  shape.grid[0] = static_cast<std::uint32_t>(grid);
  shape.block[0] = static_cast<std::uint32_t>(threads(here.config));
  shape.smem_bytes = static_cast<std::uint32_t>(smem_bytes(here.config));
  return shape;
}

}  // namespace kiln
