// A cluster of CLUSTER blocks for each row, which together are one block of THREADS threads: each
// thread holds what that block's thread would, each warp makes the same sums, and every block puts
// the sums of all warps together in the same order. So a row has the bits that `row_block.cuh`
// gives it, and how many rows there are may choose between the two: few rows, which leave most
// multiprocessors without a block, pass through the ports of several.
//
//   CLUSTER    blocks of a cluster, which share the warps of the THREADS threads
#pragma once

#include "kernel_sources/norm/constants.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert(LOAD_HINT <= 2, "few rows stay in the L2 as they are");
static_assert(CLUSTER >= 2 && CLUSTER <= 8 && (CLUSTER & (CLUSTER - 1)) == 0,
              "a cluster has 2, 4 or 8 blocks");
static_assert((ROW_SIZE / VEC + THREADS - 1) / THREADS <= 32,
              "a thread holds at most 32 accesses of its row");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "clusters need sm_90 or later"
#endif

namespace kiln::norm {

constexpr int warps_of_row = THREADS / warp_size;
constexpr int warps_of_block = (warps_of_row + CLUSTER - 1) / CLUSTER;
constexpr int cluster_threads = warps_of_block * warp_size;  // of a block

// Grid: CLUSTER blocks a row, of `cluster_threads`, launched as clusters of CLUSTER.
template <class F>
__device__ __forceinline__ void cluster_rows(const Operands<DTYPE>& call, int64 rows) {
  constexpr int packs = ROW_SIZE / VEC;
  constexpr int items = (packs + THREADS - 1) / THREADS;
  constexpr int whole = packs / THREADS;
  constexpr bool to_mean = sizeof(DTYPE) == 4;  // as in row_block.cuh
  using Row = Held<F, DTYPE, VEC, items, whole, THREADS, HAS_WEIGHT, HAS_BIAS>;
  __shared__ Moments warps[warps_of_row];
  cluster_arrive_relaxed();  // waited for below: a block's shared memory may be written once that
                             // block runs
  const int warp =
      static_cast<int>(cluster_rank()) * warps_of_block + static_cast<int>(threadIdx.x) / warp_size;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  // Warps that are more than the row has do what the first ones do, and write nothing.
  const bool writes = warp < warps_of_row;
  Row held;
  held.base = 0;
  held.first = warp % warps_of_row * warp_size + lane;
  held.end = packs;
  const Operands<DTYPE> row = call.at(blockIdx.x / CLUSTER, ROW_SIZE);
  constexpr bool pinned = EARLY == 2;
  held.template fetch<Hint(LOAD_HINT), pinned>(row);
  FactorStore<Row, cluster_threads, Early(EARLY)> factors;
  factors.before_rows(held, call);
  factors.of_row(held, row);
  if constexpr (pinned) loads_before(rows > 0);
  held.template settle<Hint(STORE_HINT)>(row, writes);
  const Moments sums = held.template moments<warp_size>(held.warp_count());
  cluster_wait();
  if (writes && lane < CLUSTER)
    store_to_cluster(&warps[warp], static_cast<uint32>(lane),
                     make_float4(sums.pivot, sums.sum, sums.square, sums.count));
  cluster_arrive();
  cluster_wait();
  const Moments m = merge<F::centred, warps_of_row, to_mean>(warps);
  const Normaliser n = normaliser<F::centred>(m, ROW_SIZE, EPS);
  factors.before_results();
  held.template write<Hint(STORE_HINT)>(
      row, n, [&](int i) { return factors.get(held, row, i); }, writes);
}

}  // namespace kiln::norm
