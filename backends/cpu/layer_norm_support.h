#ifndef KILN_BACKENDS_CPU_LAYER_NORM_SUPPORT_H_
#define KILN_BACKENDS_CPU_LAYER_NORM_SUPPORT_H_

#include <kiln/device_support.h>
#include <kiln/kernel.h>
#include <kiln/ops/layer_norm_call.h>
#include <kiln/program.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What the layer norm kernels of the CPU backend share.
namespace kiln::cpu {

// The calls that host kernels of layer normalization can serve at all.
Refusal layer_norm_refusal(const LayerNormCall& call);

// A program of the source kernels/<name>.cpp with the kernel <name>.
Program host_program(std::string_view name, const std::vector<std::string>& headers,
                     std::vector<NamedConstant> constants, const Config& config);

// Configurations: `block_elements` is how many elements the rows of one block have together, and,
// where the processor has a choice, `vector_bits` is the width of vectors that the compiler
// prefers.
Config row_config(const DeviceFacts& facts);
std::vector<Config> row_configs(const DeviceFacts& facts);

struct RowGrid {
  LaunchShape shape;
  std::int64_t block_rows = 1;
};
// REQUIRES: rows >= 0, n >= 1.
RowGrid row_grid(std::int64_t rows, std::int64_t n, const Config& config);

}  // namespace kiln::cpu

#endif  // KILN_BACKENDS_CPU_LAYER_NORM_SUPPORT_H_
