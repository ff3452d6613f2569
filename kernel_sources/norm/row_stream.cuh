// A block for each row of any length and alignment: one pass for the statistics, one for the
// result. Nothing is held between them but the moments, so the row is read twice (the second time
// out of L2 where it fits).
#pragma once

#include "kernel_sources/norm/constants.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert(LOAD_HINT <= 2, "nobody lets go of what is held");
static_assert(UNROLL >= 1 && UNROLL <= 16, "accesses that a thread has in flight");

namespace kiln::norm {

// One tile of the row: UNROLL accesses a thread. Whole tiles need no bounds.
template <class F, bool Whole>
struct Tile : Held<F, DTYPE, VEC, UNROLL, Whole ? UNROLL : 0, THREADS, HAS_WEIGHT, HAS_BIAS> {
  __device__ __forceinline__ Tile(int64 at, int left) {
    this->base = at;
    this->first = static_cast<int>(threadIdx.x);
    this->end = left;
  }
  __device__ __forceinline__ void accumulate(float pivot, float& sum, float& square) const {
    Chains s, q;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      if (!this->inside(i)) continue;
      this->x[i].each([&](int j, float v) {
        const float d = F::centred ? v - pivot : v;
        if (F::centred) s.part[j % 4] += d;
        q.part[j % 4] = __fmaf_rn(d, d, q.part[j % 4]);
      });
    }
    sum += s.total();
    square += q.total();
  }
};

// The moments of the elements that this thread has seen. The pivot is the mean of what its warp
// sees in the first tile.
struct Running {
  float pivot = 0.f, sum = 0.f, square = 0.f, count = 0.f;

  template <class F, bool Whole>
  __device__ __forceinline__ void take(const Operands<DTYPE>& row, int64 at, int64 left,
                                       bool first) {
    Tile<F, Whole> t(at, static_cast<int>(left));
    t.template fetch<Hint(LOAD_HINT)>(row);
    t.template settle<Hint(STORE_HINT)>(row, true);
    const float seen = t.warp_count();
    if (F::centred && first) {
      Chains plain;
#pragma unroll
      for (int i = 0; i < UNROLL; ++i) t.x[i].each([&](int j, float v) { plain.part[j % 4] += v; });
      const float total = lanes_sum<warp_size>(plain.total());
      pivot = seen > 0.f ? __fdividef(total, seen) : 0.f;
    }
    t.accumulate(pivot, sum, square);
    count += seen;
  }
};

// The result for one tile. Where the form writes the sum, each thread reads back just what it wrote
// itself.
template <class F, bool Whole>
__device__ __forceinline__ void give(const Operands<DTYPE>& row, const Normaliser& n, int64 at,
                                     int64 left) {
  Tile<F, Whole> t(at, static_cast<int>(left));
  FactorStore<Tile<F, Whole>, THREADS, Early::registers> factors;
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    if (!t.inside(i)) continue;
    if constexpr (F::residual) {
      t.x[i] = kiln::load<Hint::plain, VEC>(row.residual_out + t.pack(i) * VEC);
    } else {
      t.x[i] = kiln::load<Hint::stream, VEC>(row.x + t.pack(i) * VEC);
    }
  }
  factors.before_rows(t, row);
  factors.of_row(t, row);
  t.template write<Hint(STORE_HINT)>(row, n, [&](int i) { return factors.get(t, row, i); });
}

// The moments of `length` packs from `begin` on, which the block reads together. Where the length
// is known when compiling (Length, else -1), so is the number of tiles: the loop is unrolled and
// more loads are in flight.
template <class F, int64 Length>
__device__ __forceinline__ Moments block_moments(const Operands<DTYPE>& row, int64 begin,
                                                 int64 length, Moments* warps) {
  constexpr int64 tile = static_cast<int64>(THREADS) * UNROLL;
  const int64 end = Length >= 0 ? Length : length;
  const int64 whole = end / tile * tile;
  Running own;
  for (int64 at = 0; at < whole; at += tile) own.take<F, true>(row, begin + at, tile, at == 0);
  if (whole < end) own.take<F, false>(row, begin + whole, end - whole, whole == 0);
  const float sum = lanes_sum<warp_size>(own.sum), square = lanes_sum<warp_size>(own.square);
  if (threadIdx.x % warp_size == 0)
    warps[threadIdx.x / warp_size] = {own.pivot, sum, square, own.count};
  __syncthreads();
  return merge<F::centred, THREADS / warp_size>(warps);
}

template <class F, int64 Length>
__device__ __forceinline__ void write_results(const Operands<DTYPE>& row, const Normaliser& n,
                                              int64 begin, int64 length) {
  constexpr int64 tile = static_cast<int64>(THREADS) * UNROLL;
  const int64 end = Length >= 0 ? Length : length;
  const int64 whole = end / tile * tile;
  for (int64 at = 0; at < whole; at += tile) give<F, true>(row, n, begin + at, tile);
  if (whole < end) give<F, false>(row, n, begin + whole, end - whole);
}

// Grid: one block a row.
template <class F>
__device__ __forceinline__ void stream_rows(const Operands<DTYPE>& call) {
  constexpr int64 packs = ROW_SIZE / VEC;
  __shared__ Moments warps[THREADS / warp_size];
  const Operands<DTYPE> row = call.at(blockIdx.x, ROW_SIZE);
  const Moments m = block_moments<F, packs>(row, 0, packs, warps);
  write_results<F, packs>(row, normaliser<F::centred>(m, ROW_SIZE, EPS), 0, packs);
}

}  // namespace kiln::norm
