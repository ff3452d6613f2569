// d = a . b^T where rows of both are dense: a warp makes a column of d, for ROWS rows of a at a
// time, from accesses of 16 bytes along k. Made for few rows of a, where reading b is all that
// counts.
//
//   DTYPE   element type       ROWS   rows of a that a warp takes       WARPS   of a block
#include "kernel_sources/device/dtype.cuh"
#include "kernel_sources/device/memory.cuh"
#include "kernel_sources/device/reduce.cuh"

static_assert(sizeof(DTYPE) == 2, "a vector is 8 elements");
static_assert(ROWS >= 1 && ROWS <= 8 && WARPS >= 1 && WARPS <= 32, "sizes of a block's work");

namespace kiln::gemm {
inline constexpr int vec = 8;
}

// Grid: blocks of WARPS columns, those of one group of rows together. Strides in elements, of rows.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    gemm_vectorized(const DTYPE* a, const DTYPE* b, DTYPE* d, kiln::int64 m, kiln::int64 n,
                    kiln::int64 k, kiln::int64 a_row, kiln::int64 b_row) {
  using namespace kiln;
  using kiln::gemm::vec;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int64 blocks_n = (n + WARPS - 1) / WARPS;
  const int64 column = blockIdx.x % blocks_n * WARPS + threadIdx.x / warp_size;
  const int64 first = blockIdx.x / blocks_n * ROWS;
  if (column >= n) return;  // a whole warp
  const DTYPE* b_at = b + column * b_row;
  float sums[ROWS] = {};
  const int64 whole = k / vec * vec;
  for (int64 at = lane * vec; at < whole; at += warp_size * vec) {
    float y[vec];
    load<Hint::stream, vec>(b_at + at).to(y);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (first + r >= m) break;
      load<Hint::keep, vec>(a + (first + r) * a_row + at).each([&](int i, float x) {
        sums[r] += x * y[i];
      });
    }
  }
  // What no vector spans.
  const int64 rest = whole + lane;
  if (rest < k) {
    const float y = to_float(b_at[rest]);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (first + r < m) sums[r] += to_float(a[(first + r) * a_row + rest]) * y;
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float sum = lanes_sum<warp_size>(sums[r]);
    if (lane == 0 && first + r < m) d[(first + r) * n + column] = from_float<DTYPE>(sum);
  }
}
