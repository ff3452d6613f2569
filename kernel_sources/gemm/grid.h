#ifndef KILN_KERNEL_SOURCES_GEMM_GRID_H_
#define KILN_KERNEL_SOURCES_GEMM_GRID_H_

#include <kiln/status.h>

#include <absl/strings/str_format.h>

#include <cstdint>

namespace kiln {

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The blocks of a grid's first dimension. InvalidArgument when there are more than a grid has.
inline absl::StatusOr<std::uint32_t> grid_of(std::int64_t rows, std::int64_t columns) {
  const std::int64_t blocks = rows * columns;
  if (blocks <= INT32_MAX) return static_cast<std::uint32_t>(blocks);
  return absl::InvalidArgumentError(
      absl::StrFormat("gemm: tiles of d must fit a grid of %d blocks: got %d", INT32_MAX, blocks));
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_GEMM_GRID_H_
