#ifndef KILN_KERNEL_SOURCES_NORM_ROWS_H_
#define KILN_KERNEL_SOURCES_NORM_ROWS_H_

#include <kiln/op.h>
#include <kiln/tensor.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace kiln {

// A tensor seen as rows of n elements.
struct Rows {
  std::int64_t rows = 0;
  std::int64_t stride = 0;  // elements between the starts of two rows
};

// [*B, *normalized] with `trailing` dimensions normalized, as rows that lie evenly apart, each
// dense; nullopt when they do not. No rows lie anyhow. `repeats`: all rows may be one, 0 apart.
inline std::optional<Rows> as_rows(const Dims& shape, const Dims& strides, int trailing,
                                   bool repeats = false) {
  std::int64_t n = 1;
  for (int d = 0; d < shape.size() - trailing; ++d)
    if (shape[d] == 0) return Rows{};
  for (int d = shape.size() - 1; d >= shape.size() - trailing; --d) {
    if (shape[d] != 1 && strides[d] != n) return std::nullopt;
    n *= shape[d];
  }
  Rows rows{1, n};
  std::int64_t span =
      -1;  // elements from one index of the dimension in hand to the next; -1 before there is one
  for (int d = shape.size() - trailing - 1; d >= 0; --d) {
    if (shape[d] != 1) {
      if (span < 0)
        rows.stride = strides[d];
      else if (strides[d] != span)
        return std::nullopt;
      span = strides[d] * shape[d];
    }
    rows.rows *= shape[d];
  }
  if (rows.rows > 1 && rows.stride < n && !(repeats && rows.stride == 0))
    return std::nullopt;  // overlapping or broadcast rows
  return rows;
}

// The largest power of two, at most 16, that divides `bytes` (16 for 0).
inline int alignment_of(std::int64_t bytes) {
  const std::int64_t bits = bytes | 16;
  return static_cast<int>(bits & -bits);
}

// What divides the pointers of all tensors that are passed.
inline int common_alignment(const CallArgs& args) {
  int align = 16;
  for (const auto* list : {&args.inputs, &args.outputs}) {
    for (const std::optional<ArgSpec>& arg : *list) {
      if (arg) align = std::min(align, arg->alignment);
    }
  }
  return align;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ROWS_H_
