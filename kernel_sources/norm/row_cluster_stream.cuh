// A cluster of CLUSTER blocks for each row too long to hold: each block reads its slice twice.
// Sharing a row keeps few rows in work at a time, so that the second read finds them in L2.
#pragma once

#include "kernel_sources/norm/row_stream.cuh"

static_assert(LOAD_HINT <= 2, "nobody lets go of what is held");
static_assert(CLUSTER >= 2 && CLUSTER <= 16 && (CLUSTER & (CLUSTER - 1)) == 0,
              "a cluster has 2, 4, 8 or 16 blocks");
static_assert(ROW_SIZE / VEC >= CLUSTER, "every block of the cluster could have a part of the row");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "clusters need sm_90 or later"
#endif

namespace kiln::norm {

// Grid: CLUSTER blocks a row, launched as clusters of CLUSTER.
template <class F>
__device__ __forceinline__ void cluster_stream_rows(const Operands<DTYPE>& call) {
  constexpr int64 packs = ROW_SIZE / VEC;
  constexpr int64 slice = (packs + CLUSTER - 1) / CLUSTER;
  __shared__ Moments warps[THREADS / warp_size];
  __shared__ Moments slices[CLUSTER];
  cluster_arrive_relaxed();  // waited for below: a block's shared memory may be written once that
                             // block runs
  const int rank = static_cast<int>(cluster_rank());
  const int64 begin = rank * slice;
  const int64 left = packs - begin;
  const int64 length = left < 0 ? 0 : left < slice ? left : slice;
  constexpr int64 known = packs % CLUSTER == 0 ? slice : -1;
  const Operands<DTYPE> row = call.at(blockIdx.x / CLUSTER, ROW_SIZE);

  const Moments block = block_moments<F, known>(row, begin, length, warps);
  cluster_wait();
  if (threadIdx.x < CLUSTER)
    store_to_cluster(&slices[rank], threadIdx.x,
                     make_float4(block.pivot, block.sum, block.square, block.count));
  cluster_arrive();
  cluster_wait();
  const Moments m = merge<F::centred, CLUSTER>(slices);
  write_results<F, known>(row, normaliser<F::centred>(m, ROW_SIZE, EPS), begin, length);
}

}  // namespace kiln::norm
