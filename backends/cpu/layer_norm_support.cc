#include "layer_norm_support.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kiln::cpu {
namespace {

constexpr std::string_view kBlockElements = "block_elements";
constexpr std::string_view kVectorBits = "vector_bits";

bool has_512_bit_vectors(const DeviceFacts& facts) { return facts.calibration == "x86-64-v4"; }

Config make_config(const DeviceFacts& facts, std::int64_t block_elements,
                   std::int64_t vector_bits) {
  Config config{{std::string(kBlockElements), block_elements}};
  if (has_512_bit_vectors(facts)) config.set(kVectorBits, vector_bits);
  return config;
}

}  // namespace

Refusal layer_norm_refusal(const LayerNormCall& call) {
  if (call.dtype != DType::float16 && call.dtype != DType::bfloat16 &&
      call.dtype != DType::float32) {
    return refuse("serves float16, bfloat16 and float32, got ", call.dtype);
  }
  if (call.n < 1) return refuse("serves rows of at least 1 element, got ", call.n);
  if (!std::isfinite(call.eps) || call.eps < 0)
    return refuse("serves a finite eps of at least 0, got ", call.eps);
  return serves;
}

Program host_program(std::string_view name, const std::vector<std::string>& headers,
                     std::vector<NamedConstant> constants, const Config& config) {
  const std::string folder = "backends/cpu/kernels/";
  Program program{
      .source = folder + std::string(name) + ".cpp",
      .kernels = {std::string(name)},
      .constants = std::move(constants),
      // Nothing but the kernel is exported, and nothing of the C++ library is needed at load.
      .options = {"-fopenmp-simd", "-fvisibility=hidden", "-Wl,--as-needed"}};
  for (const std::string& header : headers) program.headers.push_back(folder + header);
  if (const std::int64_t bits = config[kVectorBits]; bits != 0) {
    program.options.push_back("-mprefer-vector-width=" + std::to_string(bits));
  }
  return program;
}

Config row_config(const DeviceFacts& facts) { return make_config(facts, 32768, 512); }

std::vector<Config> row_configs(const DeviceFacts& facts) {
  std::vector<Config> configs;
  for (const std::int64_t elements : {8192, 32768, 131072}) {
    configs.push_back(make_config(facts, elements, 512));
    if (has_512_bit_vectors(facts)) configs.push_back(make_config(facts, elements, 256));
  }
  return configs;
}

RowGrid row_grid(std::int64_t rows, std::int64_t n, const Config& config) {
  RowGrid grid;
  grid.block_rows = std::max<std::int64_t>(1, config[kBlockElements] / n);
  // A grid has less than 2^32 blocks.
  grid.block_rows = std::max(grid.block_rows, rows / (std::int64_t{1} << 31) + 1);
  grid.shape.grid[0] = static_cast<std::uint32_t>((rows + grid.block_rows - 1) / grid.block_rows);
  return grid;
}

}  // namespace kiln::cpu
