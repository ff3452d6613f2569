// d = a . b^T for any sizes and strides: a block makes a tile of 64 x 64, a thread 4 x 4 of it.
//
//   DTYPE   element type
#include "kernel_sources/device/dtype.cuh"

namespace kiln::gemm {
inline constexpr int tile = 64, depth = 16, threads = 256;
}

// Grid: one block a tile, tiles of a row of d together. Strides in elements.
extern "C" __global__ void __launch_bounds__(256)
    gemm(const DTYPE* a, const DTYPE* b, DTYPE* d, kiln::int64 m, kiln::int64 n, kiln::int64 k,
         kiln::int64 a_row, kiln::int64 a_column, kiln::int64 b_row, kiln::int64 b_column) {
  using kiln::int64;
  using namespace kiln::gemm;
  __shared__ float a_tile[depth][tile + 1];
  __shared__ float b_tile[depth][tile + 1];
  const int64 tiles_n = (n + tile - 1) / tile;
  const int64 first_m = blockIdx.x / tiles_n * tile, first_n = blockIdx.x % tiles_n * tile;
  const int thread = static_cast<int>(threadIdx.x);
  const int x = thread % 16, y = thread / 16;
  float sums[4][4] = {};
  for (int64 at = 0; at < k; at += depth) {
#pragma unroll 1
    for (int e = thread; e < tile * depth; e += threads) {
      const int row = e / depth, column = e % depth;
      const bool in_k = at + column < k;
      a_tile[column][row] =
          in_k && first_m + row < m
              ? kiln::to_float(a[(first_m + row) * a_row + (at + column) * a_column])
              : 0.0f;
      b_tile[column][row] =
          in_k && first_n + row < n
              ? kiln::to_float(b[(first_n + row) * b_row + (at + column) * b_column])
              : 0.0f;
    }
    __syncthreads();
#pragma unroll 4
    for (int c = 0; c < depth; ++c) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += a_tile[c][y + 16 * i] * b_tile[c][x + 16 * j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64 row = first_m + y + 16 * i, column = first_n + x + 16 * j;
      if (row < m && column < n) d[row * n + column] = kiln::from_float<DTYPE>(sums[i][j]);
    }
  }
}
