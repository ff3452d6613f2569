// Sums over the lanes of a warp, and what a block and a cluster need to exchange partial results.
// The order of the additions is fixed by the shape of the launch, so results repeat from run to
// run, bit for bit.
#pragma once

#include "kernel_sources/device/dtype.cuh"

namespace kiln {

inline constexpr int warp_size = 32;
inline constexpr uint32 all_lanes = 0xffffffffu;

// The sum over each aligned group of `Lanes` lanes, in all of them. All lanes of the warp must take
// part.
template <int Lanes>
__device__ __forceinline__ float lanes_sum(float v) {
  static_assert(Lanes >= 1 && Lanes <= warp_size && (Lanes & (Lanes - 1)) == 0,
                "a group is a power of two of lanes");
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2) v += __shfl_xor_sync(all_lanes, v, step);
  return v;
}

__device__ constexpr int round_up_to_power_of_two(int v) {
  int p = 1;
  while (p < v) p *= 2;
  return p;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ uint32 cluster_rank() {
  uint32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The barrier of all threads of a cluster, in two halves. What was written to shared memory before
// an arrive (not the relaxed one) is seen after the wait.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Stores 16 bytes at the place of `local` (an address in this block's shared memory) in the shared
// memory of block `rank`.
__device__ __forceinline__ void store_to_cluster(void* local, uint32 rank, float4 v) {
  const uint32 own = static_cast<uint32>(__cvta_generic_to_shared(local));
  uint32 remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(own), "r"(rank));
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(remote), "f"(v.x),
               "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}
#endif

}  // namespace kiln
