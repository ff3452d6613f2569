// Adds up what the splits of a query head left behind; a block a head.
//
//   Q_DTYPE, DIM, GROUP   as in decode.cuh
#pragma once

#include "kernel_sources/attention/decode_args.cuh"
#include "kernel_sources/attention/softmax.cuh"

namespace kiln::attention {

__device__ __forceinline__ void combine(const DecodeArgs& a) {
  const uint32 head = blockIdx.x;
  const int64 first = static_cast<int64>(head) * a.splits;
  const float* stats = a.partial_stats + first * 2;
  const float* sums = a.partial_sums + first * DIM;
  const float v_scale = a.v_scale == nullptr ? 1.0f : a.v_scale[head / GROUP];
  float max = minus_infinity();
#pragma unroll 1
  for (int s = 0; s < a.splits; ++s) max = fmaxf(max, stats[2 * s]);
  for (int d = static_cast<int>(threadIdx.x); d < DIM; d += static_cast<int>(blockDim.x)) {
    float sum = 0, weight = 0;
#pragma unroll 1
    for (int s = 0; s < a.splits; ++s) {
      const float keep = weight_of(stats[2 * s], max);
      sum += keep * sums[static_cast<int64>(s) * DIM + d];
      weight += keep * stats[2 * s + 1];
    }
    const float mean = weight == 0 ? 0.0f : sum / weight;
    static_cast<Q_DTYPE*>(a.out)[static_cast<int64>(head) * DIM + d] =
        from_float<Q_DTYPE>(mean * v_scale);
  }
}

}  // namespace kiln::attention
