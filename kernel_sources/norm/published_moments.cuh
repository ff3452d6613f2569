// The moments of parts of a set (or of a row) that lie in shared memory, and how blocks tell each
// other these while they run: as one word of 16 bytes, of which what is read is whole, so nothing
// needs a fence.
#pragma once

#include "kernel_sources/device/reduce.cuh"
#include "kernel_sources/norm/row.cuh"

namespace kiln::norm {

__device__ __forceinline__ int lane_of() { return static_cast<int>(threadIdx.x) % warp_size; }

// For a kernel of blocks of 256 threads: makes `count` words zero.
__device__ __forceinline__ void clear_words(uint4* words, int64 count) {
  const int64 i = static_cast<int64>(blockIdx.x) * 256 + threadIdx.x;
  if (i < count) words[i] = make_uint4(0, 0, 0, 0);
}

// By one warp: writes the moments of the `packs` packs that lie at `mine` and, for each lane, a
// warp's width further on; those behind them may be anything.
template <bool Centred, int Unroll, typename E, int V>
__device__ __forceinline__ void warp_moments(const Pack<E, V>* mine, int packs, Moments& to) {
  const int lane = lane_of();
  if (packs <= 0) {
    if (lane == 0) to = {0.f, 0.f, 0.f, 0.f};
    return;
  }
  // The mean of the first packs of the lanes: near enough to every value that sums around it lose
  // no digits.
  Chains plain, s, q;
  float pivot = 0.f;
  if constexpr (Centred) {
    const Pack<E, V> leading = lane < packs ? mine[0] : Pack<E, V>::zero();
    leading.each([&](int j, float v) { plain.part[j % 4] += v; });
    const int firsts = packs < warp_size ? packs : warp_size;
    pivot = __fdividef(lanes_sum<warp_size>(plain.total()), static_cast<float>(firsts * V));
  }
  const auto add = [&](const Pack<E, V>& pack) {
    pack.each([&](int j, float v) {
      const float d = v - pivot;
      if constexpr (Centred) s.part[j % 4] += d;
      q.part[j % 4] = __fmaf_rn(d, d, q.part[j % 4]);
    });
  };
  int at = 0;
  if constexpr (Unroll > 1) {
#pragma unroll 1
    for (; at + Unroll * warp_size <= packs; at += Unroll * warp_size) {
      Pack<E, V> x[Unroll];
#pragma unroll
      for (int k = 0; k < Unroll; ++k) x[k] = mine[at + k * warp_size];
#pragma unroll
      for (int k = 0; k < Unroll; ++k) add(x[k]);
    }
  }
#pragma unroll 1
  for (; at + lane < packs; at += warp_size) add(mine[at]);
  // Both sums at once, each in one half of the lanes.
  constexpr int half = warp_size / 2;
  const float sum = s.total(), square = q.total();
  const float other = __shfl_xor_sync(all_lanes, lane < half ? square : sum, half);
  const float total = lanes_sum<half>((lane < half ? sum : square) + other);
  if (lane == half) to.square = total;
  if (lane == 0) {
    to.pivot = pivot;
    to.sum = total;
    to.count = static_cast<float>(packs * V);
  }
}

// `last` takes the place of the count.
__device__ __forceinline__ void give_moments(Moments* to, const Moments& m, uint32 last) {
  const uint64 low = static_cast<uint64>(__float_as_uint(m.sum)) << 32 | __float_as_uint(m.pivot);
  const uint64 high = static_cast<uint64>(last) << 32 | __float_as_uint(m.square);
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

// The moments of a whole set of `total` elements, once all its parts are published: `there(part,
// moments)` says whether what was read is, and puts the count right. A lane puts its share of them
// together around the pivot of its first, at most parts / 32 of them; the warp then the lanes':
// first the mean, then the squares around it, so that nothing depends on how far their means lie
// apart.
template <typename There>
__device__ __forceinline__ Moments gather_moments(const Moments* set, int parts, float total,
                                                  There there) {
  constexpr int reads = 4;  // in flight
  const int lane = lane_of();
  Moments own{0.f, 0.f, 0.f, 0.f};
#pragma unroll 1
  for (int begin = 0; begin < parts; begin += reads * warp_size) {
    // The last is taken last: who asks for it alone asks for the others about once.
    const int last = begin + reads * warp_size < parts ? begin + reads * warp_size : parts;
    if (last - begin > warp_size) {
      Moments m;
      do m = look_at_moments(set + last - 1);
      while (!there(last - 1, m));
    }
    // Lanes with nothing left look at the last, too.
    const auto place = [&](int i) {
      const int at = begin + i * warp_size + lane;
      return at < last ? at : last - 1;
    };
    Moments part[reads];
    bool missing;
    do {
      missing = false;
#pragma unroll
      for (int i = 0; i < reads; ++i) part[i] = look_at_moments(set + place(i));
#pragma unroll
      for (int i = 0; i < reads; ++i) missing |= !there(place(i), part[i]);
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
  const float sum = lanes_sum<warp_size>(__fmaf_rn(own.count, own.pivot - first, own.sum));
  const float pivot = first + __fdividef(sum, total);
  const float move = own.pivot - pivot;
  const float moved = __fmaf_rn(own.count, move, own.sum);
  const float square = __fmaf_rn(move, own.sum + moved, own.square);
  return {pivot, lanes_sum<warp_size>(moved), lanes_sum<warp_size>(square), total};
}

}  // namespace kiln::norm
