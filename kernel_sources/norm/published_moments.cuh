// How blocks tell each other the moments of parts of a set while they run. Moments are published as
// one word of 16 bytes that is zero until then; what is read of it is whole, so nothing needs a
// fence.
#pragma once

#include "kernel_sources/device/reduce.cuh"
#include "kernel_sources/norm/row.cuh"

namespace kiln::norm {

__device__ __forceinline__ int lane_of() { return static_cast<int>(threadIdx.x) % warp_size; }

__device__ __forceinline__ void give_moments(Moments* to, const Moments& m) {
  const uint64 low = static_cast<uint64>(__float_as_uint(m.sum)) << 32 | __float_as_uint(m.pivot);
  const uint64 high =
      static_cast<uint64>(__float_as_uint(m.count)) << 32 | __float_as_uint(m.square);
  asm volatile(
      "{ .reg .b128 m; mov.b128 m, {%1, %2}; st.relaxed.gpu.global.b128 [%0], m; }" ::"l"(to),
      "l"(low), "l"(high)
      : "memory");
}
__device__ __forceinline__ Moments look_at_moments(const Moments* from) {
  uint64 low, high;
  asm volatile("{ .reg .b128 m; ld.relaxed.gpu.global.b128 m, [%2]; mov.b128 {%0, %1}, m; }"
               : "=l"(low), "=l"(high)
               : "l"(from)
               : "memory");
  return {
      __uint_as_float(static_cast<uint32>(low)), __uint_as_float(static_cast<uint32>(low >> 32)),
      __uint_as_float(static_cast<uint32>(high)), __uint_as_float(static_cast<uint32>(high >> 32))};
}

// The moments of a whole set, once all its parts are published. A lane puts its share of them
// together around the pivot of its first, at most parts / 32 of them; the warp then the lanes':
// first the mean, then the squares around it, so that nothing depends on how far their means lie
// apart.
__device__ __forceinline__ Moments set_moments(const Moments* set, int parts) {
  constexpr int reads = 4;  // in flight
  const int lane = lane_of();
  Moments own{0.f, 0.f, 0.f, 0.f};
#pragma unroll 1
  for (int begin = 0; begin < parts; begin += reads * warp_size) {
    // The last is taken last: who asks for it alone asks for the others about once.
    const int last = begin + reads * warp_size < parts ? begin + reads * warp_size : parts;
    if (last - begin > warp_size)
      while (look_at_moments(set + last - 1).count == 0.f) {
      }
    Moments part[reads];
    bool missing;
    do {
      missing = false;
#pragma unroll
      for (int i = 0; i < reads; ++i) {
        const int at = begin + i * warp_size + lane;
        part[i] = {0.f, 0.f, 0.f, 1.f};
        if (at < last) part[i] = look_at_moments(set + at);
      }
#pragma unroll
      for (int i = 0; i < reads; ++i) missing |= part[i].count == 0.f;
    } while (__any_sync(all_lanes, missing));
#pragma unroll
    for (int i = 0; i < reads; ++i) {
      const int at = begin + i * warp_size + lane;
      if (at >= last) continue;
      if (at == lane) own.pivot = part[i].pivot;
      const float move = part[i].pivot - own.pivot;
      const float moved = __fmaf_rn(part[i].count, move, part[i].sum);
      own.sum += moved;
      own.square += __fmaf_rn(move, part[i].sum + moved, part[i].square);
      own.count += part[i].count;
    }
  }
  const float first = __shfl_sync(all_lanes, own.pivot, 0);
  if (own.count == 0.f) own.pivot = first;
  const float total = lanes_sum<warp_size>(own.count);
  const float sum = lanes_sum<warp_size>(__fmaf_rn(own.count, own.pivot - first, own.sum));
  const float pivot = first + __fdividef(sum, total);
  const float move = own.pivot - pivot;
  const float moved = __fmaf_rn(own.count, move, own.sum);
  const float square = __fmaf_rn(move, own.sum + moved, own.square);
  return {pivot, lanes_sum<warp_size>(moved), lanes_sum<warp_size>(square), total};
}

}  // namespace kiln::norm
