// Layer normalization of rows of any length: two passes over a row that fits a tile, three over a
// longer one.
//   DTYPE                  element type of all tensors
//   EPS                    >= 0
//   HAS_WEIGHT, HAS_BIAS   0 or 1
#include "backends/cpu/kernels/block.hpp"
#include "backends/cpu/kernels/dtype.hpp"
#include "backends/cpu/kernels/layer_norm_row.hpp"

static_assert(EPS >= 0, "EPS: a number that is not negative");

namespace {

using T = DTYPE;
using kiln::RowScale;
using std::int64_t;

constexpr int kTile = 4096;  // floats; 16 KiB stay in the first-level cache
constexpr int kStep = 256;   // elements for which weight and bias are converted at a time

inline int tile_at(int64_t first, int64_t n) {
  return n - first < kTile ? static_cast<int>(n - first) : kTile;
}

void normalise(float* tile, int count, int64_t first, const RowScale& row, const void* weight,
               const void* bias) {
  for (int at = 0; at < count; at += kStep) {
    const int step = count - at < kStep ? count - at : kStep;
    alignas(64) float w[kStep], b[kStep];
    float* v = tile + at;
    if (HAS_WEIGHT) kiln::load<T>(weight, first + at, step, w);
    if (HAS_BIAS) kiln::load<T>(bias, first + at, step, b);
#pragma omp simd
    for (int i = 0; i < step; ++i) {
      float y = ((v[i] - row.shift) - row.delta) * row.scale;
      if (HAS_WEIGHT) y *= w[i];
      if (HAS_BIAS) y += b[i];
      v[i] = y;
    }
  }
}

// A row that fits the tile: read once.
void short_row(const void* x, const void* weight, const void* bias, void* y, int n, float* tile) {
  kiln::load<T>(x, 0, n, tile);
  const float shift = kiln::sum(tile, n) / static_cast<float>(n);
  const kiln::Moments m = kiln::moments(tile, n, shift);
  normalise(tile, n, 0, kiln::row_scale(shift, m.first, m.second, n, EPS), weight, bias);
  kiln::store<T>(tile, n, y, 0);
}

void long_row(const void* x, const void* weight, const void* bias, void* y, int64_t n,
              float* tile) {
  double total = 0, first = 0, second = 0;
  for (int64_t at = 0; at < n; at += kTile) {
    kiln::load<T>(x, at, tile_at(at, n), tile);
    total += kiln::sum(tile, tile_at(at, n));
  }
  const float shift = static_cast<float>(total / static_cast<double>(n));
  for (int64_t at = 0; at < n; at += kTile) {
    kiln::load<T>(x, at, tile_at(at, n), tile);
    const kiln::Moments m = kiln::moments(tile, tile_at(at, n), shift);
    first += m.first;
    second += m.second;
  }
  const RowScale row = kiln::row_scale(shift, first, second, n, EPS);
  for (int64_t at = 0; at < n; at += kTile) {
    const int count = tile_at(at, n);
    kiln::load<T>(x, at, count, tile);
    normalise(tile, count, at, row, weight, bias);
    kiln::store<T>(tile, count, y, at);
  }
}

}  // namespace

// Arguments: x, weight, bias, y, rows, n, elements between rows of x, rows of one block.
KILN_CPU_KERNEL(cpu_layer_norm) {
  const char* x = static_cast<const char*>(kiln::arg<const void*>(args, 0));
  const void* weight = kiln::arg<const void*>(args, 1);
  const void* bias = kiln::arg<const void*>(args, 2);
  char* y = static_cast<char*>(kiln::arg<void*>(args, 3));
  const int64_t rows = kiln::arg<int64_t>(args, 4);
  const int64_t n = kiln::arg<int64_t>(args, 5);
  const int64_t stride = kiln::arg<int64_t>(args, 6);
  const int64_t block_rows = kiln::arg<int64_t>(args, 7);
  constexpr int64_t kBytes = sizeof(T);

  alignas(64) float tile[kTile];
  const int64_t begin = block->index[0] * block_rows;
  const int64_t end = rows - begin < block_rows ? rows : begin + block_rows;
  for (int64_t row = begin; row < end; ++row) {
    const char* from = x + row * stride * kBytes;
    char* to = y + row * n * kBytes;
    if (n <= kTile) {
      short_row(from, weight, bias, to, static_cast<int>(n), tile);
    } else {
      long_row(from, weight, bias, to, n, tile);
    }
  }
}
