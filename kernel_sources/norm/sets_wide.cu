// Sets that the registers of one block hold: one read, one barrier, one write. A block for each
// set.
//
//   ITEMS      packs that a thread holds
#include "kernel_sources/norm/sets.cuh"

static_assert(ITEMS >= 1 && ITEMS <= 128, "packs that a thread holds");

using namespace kiln;
using namespace kiln::norm;

// Grid: at most one block a set; a block takes every gridDim.x-th one.
extern "C" __global__ void __launch_bounds__(THREADS) sets_wide(SetsCall call) {
  __shared__ Moments warps[2][THREADS / warp_size];  // by turns: one barrier a set is enough
  const int packs = static_cast<int>(call.pieces * call.piece);
  const Walk<int> walk(call, threadIdx.x);
  int turn = 0;
#pragma unroll 1
  for (int64 set = blockIdx.x; set < call.sets; set += gridDim.x, turn ^= 1) {
    const int64 start = set * call.set_stride * VEC;
    Tile<ITEMS> tile(packs);
    tile.fetch<Hint::stream>(call.x + start, walk);
    const SetFactors factors(call, set);
    const Moments own = tile.moments();
    if (threadIdx.x % warp_size == 0) warps[turn][threadIdx.x / warp_size] = own;
    __syncthreads();
    const SetStatistics s = statistics(call, merge<true, THREADS / warp_size>(warps[turn]));
    if (threadIdx.x == 0) publish(call, set, s);
    give(tile, call.y + start, walk.again(), s, factors);
  }
}
