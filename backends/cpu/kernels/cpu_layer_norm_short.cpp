// Layer normalization of rows so short that the compiler unrolls the whole row.
//   N                      elements of a row, 1 to 64
//   DTYPE                  element type of all tensors
//   EPS                    >= 0
//   HAS_WEIGHT, HAS_BIAS   0 or 1
#include "backends/cpu/kernels/block.hpp"
#include "backends/cpu/kernels/dtype.hpp"
#include "backends/cpu/kernels/layer_norm_row.hpp"

static_assert(N >= 1 && N <= 64, "N: 1 to 64");
static_assert(EPS >= 0, "EPS: a number that is not negative");

namespace {
using T = DTYPE;
using std::int64_t;
}  // namespace

// Arguments: x, weight, bias, y, rows, elements between rows of x, rows of one block.
KILN_CPU_KERNEL(cpu_layer_norm_short) {
  const char* x = static_cast<const char*>(kiln::arg<const void*>(args, 0));
  char* y = static_cast<char*>(kiln::arg<void*>(args, 3));
  const int64_t rows = kiln::arg<int64_t>(args, 4);
  const int64_t stride = kiln::arg<int64_t>(args, 5);
  const int64_t block_rows = kiln::arg<int64_t>(args, 6);
  constexpr int64_t kBytes = sizeof(T);

  alignas(64) float w[N], b[N], v[N];
  if (HAS_WEIGHT) kiln::load<T>(kiln::arg<const void*>(args, 1), 0, N, w);
  if (HAS_BIAS) kiln::load<T>(kiln::arg<const void*>(args, 2), 0, N, b);
  const int64_t begin = block->index[0] * block_rows;
  const int64_t end = rows - begin < block_rows ? rows : begin + block_rows;
  for (int64_t at = begin; at < end; ++at) {
    kiln::load<T>(x + at * stride * kBytes, 0, N, v);
    const float shift = kiln::sum(v, N) / static_cast<float>(N);
    const kiln::Moments m = kiln::moments(v, N, shift);
    const kiln::RowScale row = kiln::row_scale(shift, m.first, m.second, N, EPS);
    for (int i = 0; i < N; ++i) {
      float value = ((v[i] - row.shift) - row.delta) * row.scale;
      if (HAS_WEIGHT) value *= w[i];
      if (HAS_BIAS) value += b[i];
      v[i] = value;
    }
    kiln::store<T>(v, N, y + at * N * kBytes, 0);
  }
}
