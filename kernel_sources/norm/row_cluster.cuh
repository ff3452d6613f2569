// A cluster of CLUSTER blocks for each long row: each block holds a slice in registers, and the
// blocks exchange the moments of their slices through distributed shared memory.
//
//   CLUSTER    blocks of a cluster
//   LOOP       0: a cluster takes one row; 1: several; 2: several, and the next is loaded before
//   the present one is reduced
#pragma once

#include "kernel_sources/norm/constants.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert(LOAD_HINT <= 2, "nobody lets go of what is held");
static_assert(CLUSTER >= 2 && CLUSTER <= 16 && (CLUSTER & (CLUSTER - 1)) == 0,
              "a cluster has 2, 4, 8 or 16 blocks");
static_assert(ROW_SIZE / VEC >= CLUSTER, "every block of the cluster could hold a part of the row");
static_assert((ROW_SIZE / VEC + CLUSTER * THREADS - 1) / (CLUSTER * THREADS) <= 32,
              "a thread holds at most 32 accesses of its row");
static_assert(LOOP >= 0 && LOOP <= 2, "LOOP has three values");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "clusters need sm_90 or later"
#endif

namespace kiln::norm {

// Grid: a multiple of CLUSTER blocks, launched as clusters of CLUSTER; at most one cluster a row. A
// cluster takes every (gridDim.x / CLUSTER)-th row.
template <class F>
__device__ __forceinline__ void cluster_rows(const Operands<DTYPE>& call, int64 rows) {
  constexpr int packs = ROW_SIZE / VEC;
  constexpr int slice = (packs + CLUSTER - 1) / CLUSTER;
  constexpr int items = (slice + THREADS - 1) / THREADS;
  constexpr bool even = packs % CLUSTER == 0;
  constexpr int whole = even ? slice / THREADS : 0;
  using Row = Held<F, DTYPE, VEC, items, whole, THREADS, HAS_WEIGHT, HAS_BIAS>;
  __shared__ Moments warps[2][THREADS / warp_size];  // by turns: one barrier a row is enough
  __shared__ Moments slices[2][CLUSTER];
  cluster_arrive_relaxed();  // waited for below: a block's shared memory may be written once that
                             // block runs

  const int rank = static_cast<int>(cluster_rank());
  Row held;
  held.base = static_cast<int64>(rank) * slice;
  held.first = static_cast<int>(threadIdx.x);
  held.end = even ? slice : packs - rank * slice < slice ? packs - rank * slice : slice;
  int64 at = blockIdx.x / CLUSTER;
  held.template fetch<Hint(LOAD_HINT)>(call.at(at, ROW_SIZE));
  FactorStore<Row, THREADS, Early(EARLY)> factors;
  factors.before_rows(held, call);
  cluster_wait();

  for (int turn = 0;; turn ^= 1) {
    const Operands<DTYPE> row = call.at(at, ROW_SIZE);
    at += gridDim.x / CLUSTER;
    Row next = held;
    if (LOOP == 2 && at < rows) next.template fetch<Hint(LOAD_HINT)>(call.at(at, ROW_SIZE));
    factors.of_row(held, row);
    held.template settle<Hint(STORE_HINT)>(row, true);
    const Moments own = held.template moments<warp_size>(held.warp_count());
    if (threadIdx.x % warp_size == 0) warps[turn][threadIdx.x / warp_size] = own;
    __syncthreads();
    const Moments block = merge<F::centred, THREADS / warp_size>(warps[turn]);
    if (threadIdx.x < CLUSTER)
      store_to_cluster(&slices[turn][rank], threadIdx.x,
                       make_float4(block.pivot, block.sum, block.square, block.count));
    cluster_arrive();
    cluster_wait();
    const Moments m = merge<F::centred, CLUSTER>(slices[turn]);
    const Normaliser n = normaliser<F::centred>(m, ROW_SIZE, EPS);
    factors.before_results();
    held.template write<Hint(STORE_HINT)>(row, n, [&](int i) { return factors.get(held, row, i); });
    if (LOOP == 0 || at >= rows) return;
    if constexpr (LOOP == 2) {
      held = next;
    } else {
      held.template fetch<Hint(LOAD_HINT)>(call.at(at, ROW_SIZE));
    }
  }
}

}  // namespace kiln::norm
