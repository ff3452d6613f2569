// Sets of any size, a block for each: one pass for the statistics, one for the result, so the set
// is read twice (the second time out of L2 where it fits).
//
//   UNROLL     packs that a thread has in flight
#include "kernel_sources/norm/sets.cuh"

static_assert(UNROLL >= 1 && UNROLL <= 16, "packs that a thread has in flight");

using namespace kiln;
using namespace kiln::norm;

namespace {

constexpr int tile_packs = THREADS * UNROLL;

__device__ __forceinline__ int tile_end(int64 left) {
  return left < tile_packs ? static_cast<int>(left) : tile_packs;
}

// The moments of what this thread has seen. The pivot is its warp's in the first tile.
__device__ __forceinline__ Moments seen_by_thread(const SetsCall& call, const DTYPE* set,
                                                  int64 packs) {
  Walk<int64> walk(call, threadIdx.x);
  Moments own{0.f, 0.f, 0.f, 0.f};
#pragma unroll 1
  for (int64 at = 0; at < packs; at += tile_packs) {
    Tile<UNROLL> tile(tile_end(packs - at));
    tile.fetch<Hint::keep>(set, walk);
    if (at == 0) own.pivot = tile.warp_pivot();
    tile.accumulate(own.pivot, own.sum, own.square);
    own.count += tile.warp_count();
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) walk.move();
  }
  return own;
}

}  // namespace

// Grid: at most one block a set; a block takes every gridDim.x-th one.
extern "C" __global__ void __launch_bounds__(THREADS) sets_stream(SetsCall call) {
  __shared__ Moments warps[2][THREADS / warp_size];
  const int64 packs = call.pieces * call.piece;
  int turn = 0;
#pragma unroll 1
  for (int64 set = blockIdx.x; set < call.sets; set += gridDim.x, turn ^= 1) {
    const int64 start = start_of(call, set);
    const DTYPE* x = call.x + start;
    Moments own = seen_by_thread(call, x, packs);
    own.sum = lanes_sum<warp_size>(own.sum);
    own.square = lanes_sum<warp_size>(own.square);
    if (threadIdx.x % warp_size == 0) warps[turn][threadIdx.x / warp_size] = own;
    __syncthreads();
    const SetStatistics s = statistics(call, merge<true, THREADS / warp_size>(warps[turn]));
    if (threadIdx.x == 0) publish(call, set, s, Running(call, set, true));
    const SetFactors factors(call, set);
    Walk<int64> walk(call, threadIdx.x);
#pragma unroll 1
    for (int64 at = 0; at < packs; at += tile_packs) {
      Tile<UNROLL> tile(tile_end(packs - at));
      tile.fetch<Hint::stream>(x, walk);
      give(tile, call.y + start, walk.again(), s, factors);
#pragma unroll
      for (int i = 0; i < UNROLL; ++i) walk.move();
    }
  }
}
