// Decode of one long float16 sequence of 8 query heads a kv head and 128 elements a head. Tiles of
// keys and values are copied to shared memory ahead of their use; a warp takes a query head, so
// that a tile is read once for all of them. In a tile a lane scores whole keys, without exchange,
// and then sums whole columns of the values.
//
//   TILE_KEYS   keys of a tile       STAGES   tiles in flight
//   SCALE       of the scores        Q_DTYPE, DIM, GROUP   float16, 128, 8
#include "kernel_sources/attention/decode_args.cuh"
#include "kernel_sources/attention/decode_combine.cuh"
#include "kernel_sources/attention/softmax.cuh"
#include "kernel_sources/device/dtype.cuh"
#include "kernel_sources/device/memory.cuh"

static_assert(DIM == 128 && GROUP == 8 && sizeof(Q_DTYPE) == 2, "made for this shape alone");
static_assert(TILE_KEYS % 32 == 0 && TILE_KEYS <= 128, "a lane scores whole keys");
static_assert(STAGES >= 2 && STAGES <= 4, "the next tile is on its way while one is used");

namespace kiln::attention {

inline constexpr int threads = GROUP * 32;
inline constexpr int row_bytes = DIM * 2;
// Rows lie 16 bytes further apart than they are long: 8 lanes that read 16 bytes of 8 rows meet all
// banks once.
inline constexpr int pitch = row_bytes + 16;
inline constexpr int tile_bytes = TILE_KEYS * pitch;
inline constexpr int keys_of_lane = TILE_KEYS / 32;

// Copies 16 bytes to shared memory, or zeros when there is nothing there.
__device__ __forceinline__ void copy_16(uint32 to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

__device__ __forceinline__ uint4 load_shared_16(const unsigned char* p) {
  return *reinterpret_cast<const uint4*>(p);
}

// Keys [first, end) of one of k and v, up to TILE_KEYS of them, to `to`.
__device__ __forceinline__ void copy_tile(unsigned char* to, const Q_DTYPE* rows, int64 stride,
                                          int64 first, int64 end) {
  // A thread copies the same part of every `step`-th row: addresses advance by a constant.
  constexpr int chunks = row_bytes / 16, step = threads / chunks;
  static_assert(threads % chunks == 0 && TILE_KEYS % step == 0, "all threads copy alike");
  const int part = static_cast<int>(threadIdx.x) % chunks;
  int row = static_cast<int>(threadIdx.x) / chunks;
  uint32 place = static_cast<uint32>(__cvta_generic_to_shared(to)) +
                 static_cast<uint32>(row * pitch + part * 16);
  const Q_DTYPE* from = rows + (first + row) * stride + part * 8;
  const int keys = end - first < TILE_KEYS ? static_cast<int>(end - first) : TILE_KEYS;
#pragma unroll
  for (int i = 0; i < TILE_KEYS / step; ++i) {
    // Where there is no key the address is that of one there is: nothing is read from it.
    copy_16(place, row < keys ? from : rows, row < keys);
    row += step;
    place += step * pitch;
    from += step * stride;
  }
}

// q . key for a key's row in shared memory; `q` holds the head's elements as floats.
__device__ __forceinline__ float dot_row(const unsigned char* row, const float* q) {
  float dot = 0;
#pragma unroll 4
  for (int c = 0; c < DIM / 8; ++c) {
    const uint4 words = load_shared_16(row + c * 16);
    const float4 low = *reinterpret_cast<const float4*>(q + c * 8);
    const float4 high = *reinterpret_cast<const float4*>(q + c * 8 + 4);
    const FloatPair a = unpack<Q_DTYPE>(words.x), b = unpack<Q_DTYPE>(words.y);
    const FloatPair e = unpack<Q_DTYPE>(words.z), f = unpack<Q_DTYPE>(words.w);
    dot += low.x * a.low + low.y * a.high + low.z * b.low + low.w * b.high;
    dot += high.x * e.low + high.y * e.high + high.z * f.low + high.w * f.high;
  }
  return dot;
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
  return v;
}
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}

// The softmax and sums of a warp's head: a lane has elements 4 * lane to 4 * lane + 3.
struct Head {
  float max, weight, sums[4];

  __device__ __forceinline__ void start() {
    max = minus_infinity();
    weight = 0;
    for (float& s : sums) s = 0;
  }

  // Adds a tile with `count` keys; `weights` is the warp's place for the tile's weights.
  __device__ __forceinline__ void add(const unsigned char* k, const unsigned char* v,
                                      const float* q, float* weights, int count) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float scores[keys_of_lane], top = minus_infinity();
#pragma unroll
    for (int j = 0; j < keys_of_lane; ++j) {
      const int key = j * 32 + lane;
      scores[j] = key < count ? score_of(dot_row(k + key * pitch, q)) : minus_infinity();
      top = fmaxf(top, scores[j]);
    }
    const float higher = fmaxf(max, warp_max(top));
    const float keep = weight_of(max, higher);
    max = higher;
    float added = 0;
#pragma unroll
    for (int j = 0; j < keys_of_lane; ++j) {
      const float w = weight_of(scores[j], max);
      weights[j * 32 + lane] = w;
      added += w;
    }
    weight = weight * keep + warp_sum(added);
    for (float& s : sums) s *= keep;
    __syncwarp();
    for (int key = 0; key < count; ++key) {
      const uint2 words = *reinterpret_cast<const uint2*>(v + key * pitch + lane * 8);
      const FloatPair a = unpack<Q_DTYPE>(words.x), b = unpack<Q_DTYPE>(words.y);
      const float w = weights[key];
      sums[0] += w * a.low;
      sums[1] += w * a.high;
      sums[2] += w * b.low;
      sums[3] += w * b.high;
    }
    __syncwarp();
  }

  __device__ __forceinline__ void write(const DecodeArgs& a, int64 head, int split) const {
    const int d = static_cast<int>(threadIdx.x) % 32 * 4;
    if (a.splits == 1) {
      uint2 packed;
      packed.x = pack<Q_DTYPE>(sums[0] / weight, sums[1] / weight);
      packed.y = pack<Q_DTYPE>(sums[2] / weight, sums[3] / weight);
      Q_DTYPE* out = static_cast<Q_DTYPE*>(a.out) + head * DIM + d;
      out[0].bits = static_cast<uint16>(packed.x);
      out[1].bits = static_cast<uint16>(packed.x >> 16);
      out[2].bits = static_cast<uint16>(packed.y);
      out[3].bits = static_cast<uint16>(packed.y >> 16);
      return;
    }
    const int64 place = head * a.splits + split;
    for (int i = 0; i < 4; ++i) a.partial_sums[place * DIM + d + i] = sums[i];
    if (d == 0) {
      a.partial_stats[place * 2] = max;
      a.partial_stats[place * 2 + 1] = weight;
    }
  }
};

}  // namespace kiln::attention

// Dynamic shared memory: STAGES times a tile of keys and one of values. Grid: heads_kv * splits,
// one sequence. A split is a run of whole tiles.
extern "C" __global__ void __launch_bounds__(GROUP * 32)
    gqa_dense_decode_long_context(const kiln::attention::DecodeArgs args) {
  using namespace kiln::attention;
  using kiln::int64;
  using kiln::uint32;
  extern __shared__ __align__(16) unsigned char tiles[];
  __shared__ __align__(16) float q[GROUP][DIM];
  __shared__ float weights[GROUP][TILE_KEYS];
  const int split = static_cast<int>(blockIdx.x) % args.splits;
  const int head_kv = static_cast<int>(blockIdx.x) / args.splits;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Q_DTYPE* k = static_cast<const Q_DTYPE*>(args.k) + head_kv * args.k_head_stride;
  const Q_DTYPE* v = static_cast<const Q_DTYPE*>(args.v) + head_kv * args.v_head_stride;
  // Tiles * s / splits, in numbers of 32 bits: their division takes a tenth of the code.
  const auto first_tile_of = [&](uint32 s) -> int64 {
    const uint32 splits = static_cast<uint32>(args.splits);
    const uint32 all = static_cast<uint32>((args.seqlen_kv + TILE_KEYS - 1) / TILE_KEYS);
    return static_cast<int64>(all / splits) * s + all % splits * s / splits;
  };
  const int64 first_tile = first_tile_of(split), end_tile = first_tile_of(split + 1);

  const auto fetch = [&](int64 tile) {
    if (tile < end_tile) {
      unsigned char* to = tiles + (tile - first_tile) % STAGES * 2 * tile_bytes;
      copy_tile(to, k, args.k_key_stride, tile * TILE_KEYS, args.seqlen_kv);
      copy_tile(to + tile_bytes, v, args.v_key_stride, tile * TILE_KEYS, args.seqlen_kv);
    }
    end_copies();  // also where there is nothing: waiting counts groups
  };
  for (int s = 0; s < STAGES - 1; ++s) fetch(first_tile + s);

  const Q_DTYPE* heads =
      static_cast<const Q_DTYPE*>(args.q) + static_cast<int64>(head_kv) * GROUP * DIM;
  for (int e = static_cast<int>(threadIdx.x); e < GROUP * DIM; e += threads) {
    q[e / DIM][e % DIM] = kiln::to_float(heads[e]) * static_cast<float>(SCALE);
  }
  Head head;
  head.start();
  for (int64 tile = first_tile; tile < end_tile; ++tile) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();  // the tile is here for all, and all are done with the one that is replaced
                      // next
    fetch(tile + STAGES - 1);
    const unsigned char* stage = tiles + (tile - first_tile) % STAGES * 2 * tile_bytes;
    const int64 left = args.seqlen_kv - tile * TILE_KEYS;
    head.add(stage, stage + tile_bytes, q[warp], weights[warp],
             left < TILE_KEYS ? static_cast<int>(left) : TILE_KEYS);
  }
  wait_for_copies<0>();
  head.write(args, static_cast<int64>(head_kv) * GROUP + warp, split);
}

extern "C" __global__ void __launch_bounds__(128)
    gqa_dense_decode_long_context_combine(const kiln::attention::DecodeArgs args) {
  kiln::attention::combine(args);
}
