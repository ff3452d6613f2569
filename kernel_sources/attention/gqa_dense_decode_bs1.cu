// Decode of one sequence in one kernel: the blocks of a cluster share the keys of a kv head, and
// each adds up a part of the result from the others' shared memory. There are no partial results in
// global memory and no second launch.
//
//   CLUSTER   blocks of a cluster, as many as there are splits
#include "kernel_sources/attention/decode.cuh"

static_assert(CLUSTER >= 1 && CLUSTER <= 8,
              "clusters of up to 8 blocks run on every device that has them");

namespace kiln::attention {

inline constexpr int width = DIM % 2 == 0 ? 2 : 1;  // elements that a thread adds up side by side

// Where `local` lies in the shared memory of block `rank`, in the address space of the cluster.
__device__ __forceinline__ uint32 place_in_cluster(const void* local, uint32 rank) {
  const uint32 own = static_cast<uint32>(__cvta_generic_to_shared(local));
  uint32 remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(own), "r"(rank));
  return remote;
}
__device__ __forceinline__ void load_from_cluster(uint32 place, float (&v)[1]) {
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v[0]) : "r"(place) : "memory");
}
__device__ __forceinline__ void load_from_cluster(uint32 place, float (&v)[2]) {
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
               : "=f"(v[0]), "=f"(v[1])
               : "r"(place)
               : "memory");
}

__device__ __forceinline__ void write_share(const DecodeArgs& a, const Task& task,
                                            const Shared& shared) {
  const float v_scale = scale_of(a.v_scale, a, task);
  const int first = static_cast<int>(cluster_rank()) * threads + static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int e = first * width; e < TILE * DIM; e += CLUSTER * threads * width) {
    const int t = e / DIM, d = e % DIM;
    if (!has_head(task, t)) break;
    float stats[CLUSTER][2], parts[CLUSTER][width], sums[width] = {};
#pragma unroll
    for (int r = 0; r < CLUSTER; ++r) {
      load_from_cluster(place_in_cluster(shared.block_stats[t], r), stats[r]);
      load_from_cluster(place_in_cluster(&shared.sums[0][t][d], r), parts[r]);
    }
    float max = minus_infinity(), weight = 0;
#pragma unroll
    for (int r = 0; r < CLUSTER; ++r) max = fmaxf(max, stats[r][0]);
#pragma unroll
    for (int r = 0; r < CLUSTER; ++r) {
      const float keep = weight_of(stats[r][0], max);
      weight += keep * stats[r][1];
#pragma unroll
      for (int i = 0; i < width; ++i) sums[i] += keep * parts[r][i];
    }
    Q_DTYPE* const out = static_cast<Q_DTYPE*>(a.out) + head_of(a, task, t) * DIM + d;
#pragma unroll
    for (int i = 0; i < width; ++i)
      out[i] = from_float<Q_DTYPE>(mean_of(sums[i], weight) * v_scale);
  }
}

}  // namespace kiln::attention

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    gqa_dense_decode_bs1(const kiln::attention::DecodeArgs args) {
  __shared__ kiln::attention::Shared shared;
  const kiln::attention::Task task = kiln::attention::task_at(args, blockIdx.x);
  kiln::attention::load_query(args, task, shared);
  kiln::attention::Lane lane;
  lane.start(shared);
  kiln::attention::attend(args, task, lane);
  kiln::attention::merge(task, lane, shared, [&](int t, int d, float sum, float max, float weight) {
    shared.sums[0][t][d] = sum;
    if (d == 0) {
      shared.block_stats[t][0] = max;
      shared.block_stats[t][1] = weight;
    }
  });
  kiln::cluster_arrive();
  kiln::cluster_wait();
  kiln::attention::write_share(args, task, shared);
  // A block's shared memory goes with it, and the others may still read.
  kiln::cluster_arrive();
  kiln::cluster_wait();
}
