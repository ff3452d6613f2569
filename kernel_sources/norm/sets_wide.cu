// Sets that the registers of THREADS threads hold: one read, one barrier, one write. A warp alone
// needs no barrier.
//
//   PACKS      of a set
//   ITEMS      packs that a thread holds
//   SETS       sets of a block, which has THREADS x SETS threads
#include "kernel_sources/norm/sets.cuh"

static_assert(ITEMS >= 1 && ITEMS <= 128, "packs that a thread holds");
static_assert(PACKS >= 1 && PACKS <= ITEMS * THREADS, "packs that a set's threads hold");
static_assert(SETS >= 1 && THREADS * SETS <= 1024, "sets of a block");

using namespace kiln;
using namespace kiln::norm;

namespace {

// The threads of the block's barriers come here together; those past the last set (`write` is
// false) compute it again.
__device__ __forceinline__ void one_set(const SetsCall& call, int64 set, bool write, int turn) {
  __shared__ Moments warps[2][SETS][THREADS / warp_size];  // by turns: one barrier a set is enough
  const Walk<int> walk(call, threadIdx.x);
  const int64 start = start_of(call, set);
  Tile<ITEMS, PACKS / THREADS> tile(PACKS);
  tile.fetch_set(call, start, walk);
  // Values for all of a set are asked for once x has come, and before the barrier: asked for with x
  // they hold up that of other warps (0.1 us, H200). Where those of pieces are is found while x
  // comes.
  SetFactors factors;
  if constexpr (PER_PIECE) factors = SetFactors(call, set);
  Moments m = tile.moments();
  if constexpr (!PER_PIECE) factors = SetFactors(call, set);
  const Running was(call, set, threadIdx.x == 0);
  if constexpr (THREADS > warp_size) {
    Moments* const own = warps[turn][threadIdx.y];
    if (threadIdx.x % warp_size == 0) own[threadIdx.x / warp_size] = m;
    __syncthreads();
    m = merge<true, THREADS / warp_size>(own);
  }
  const SetStatistics s = statistics(call, m);
  if (!write) return;
  give(tile, call.y + start, walk.again(), s, factors);
  if (threadIdx.x == 0) publish(call, set, s, was);
}

}  // namespace

// Grid: SETS sets a block; where positions need 64 bits (SMALL = 0) a block takes every
// gridDim.x-th group of them.
extern "C" __global__ void __launch_bounds__(THREADS* SETS) sets_wide(SetsCall call) {
  if constexpr (SMALL) {
    const int set = static_cast<int>(blockIdx.x) * SETS + static_cast<int>(threadIdx.y);
    const int sets = static_cast<int>(call.sets);
    one_set(call, set < sets ? set : sets - 1, set < sets, 0);
  } else {
    int turn = 0;
#pragma unroll 1
    for (int64 first = static_cast<int64>(blockIdx.x) * SETS; first < call.sets;
         first += static_cast<int64>(gridDim.x) * SETS, turn ^= 1) {
      const int64 set = first + threadIdx.y;
      one_set(call, set < call.sets ? set : call.sets - 1, set < call.sets, turn);
    }
  }
}
