// What batch, instance and group normalization share: a SET is the elements that have one mean and
// one variance. It lies in memory as `pieces` runs of `piece` packs whose starts are `stride` packs
// apart:
//
//   batch norm      a set is a channel: B pieces of S elements, C * S apart
//   instance norm   a set is a channel of one batch item: one piece of S elements
//   group norm      a set is a group of channels of one batch item: C / G pieces of S elements, one
//   after the other
//
// All extents are arguments: one binary serves every shape. How threads are put on sets is in
// sets_wide.cu, sets_stream.cu and sets_split.cu.
//
//   DTYPE      element type of x and y            FACTOR     element type of weight and bias
//   VEC        elements of an access              THREADS    threads of a block
//   PER_PIECE  1: every piece has its own weight and bias (group norm); 0: they belong to the set
//   CONTIGUOUS 1: a set's pieces follow each other without gaps; 0: they may lie apart
//   STORE_HINT kiln::Hint of what is written
//   SMALL      1: all positions of elements fit 31 bits, so that none is divided in 64
//   HAS_WEIGHT, HAS_BIAS   1: the call has them
//   HAS_RUNNING            1: the call has running statistics, and moves them
//   HAS_STATISTICS         1: the call may ask for mean, rstd and variance of its sets
#pragma once

#include "kernel_sources/device/dtype.cuh"
#include "kernel_sources/device/memory.cuh"
#include "kernel_sources/device/reduce.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert(VEC >= 1 && VEC * sizeof(DTYPE) <= 16 && (VEC & (VEC - 1)) == 0,
              "an access moves up to 16 bytes");
static_assert(THREADS >= 32 && THREADS <= 1024 && THREADS % 32 == 0,
              "a block has 1 to 32 whole warps");
static_assert(PER_PIECE == 0 || PER_PIECE == 1, "PER_PIECE is a choice");
static_assert(CONTIGUOUS == 0 || CONTIGUOUS == 1, "CONTIGUOUS is a choice");
static_assert(SMALL == 0 || SMALL == 1, "SMALL is a choice");
static_assert(HAS_WEIGHT == 0 || HAS_WEIGHT == 1, "HAS_WEIGHT is a choice");
static_assert(HAS_BIAS == 0 || HAS_BIAS == 1, "HAS_BIAS is a choice");
static_assert(HAS_RUNNING == 0 || HAS_RUNNING == 1, "HAS_RUNNING is a choice");
static_assert(HAS_STATISTICS == 0 || HAS_STATISTICS == 1, "HAS_STATISTICS is a choice");
static_assert(STORE_HINT >= 0 && STORE_HINT <= 2, "kiln::Hint has three values");

namespace kiln::norm {

// The arguments of a call. The host's copy is SetsCall in sets.h: both change together. Null: what
// the constants say a call has not, and each of mean, rstd and variance that it does not ask for.
struct SetsCall {
  // What is needed first comes first: it shares a line of the constant cache.
  const DTYPE* x;
  DTYPE* y;
  int64 sets;
  int64 set_stride;  // packs from one set to the next
  const FACTOR* weight;
  const FACTOR* bias;
  float inverse_count;  // 1 / n, n: elements of a set
  float eps;
  int64 groups;  // sets after which weight and bias begin anew
  int64 pieces;  // of a set
  int64 piece;   // packs of a piece; pieces never share a pack
  int64 stride;  // packs from one piece to the next
  float unbias;  // n / (n - 1)
  float momentum;
  float* mean;  // of each set
  float* rstd;
  float* variance;      // of each set, unbiased
  float* running_mean;  // moved towards the set's by `momentum`
  float* running_var;
};

using SetPack = Pack<DTYPE, VEC>;

__device__ __forceinline__ int64 divide(int64 a, int64 b) {
  return SMALL || (a | b) >> 32 == 0
             ? static_cast<int64>(static_cast<uint32>(a) / static_cast<uint32>(b))
             : a / b;
}

// The element of x and y at which a set begins.
__device__ __forceinline__ int64 start_of(const SetsCall& call, int64 set) {
  if constexpr (!SMALL) return set * call.set_stride * VEC;
  return static_cast<uint32>(set) * static_cast<uint32>(call.set_stride) * uint32{VEC};
}

// A place in a set that moves on by Step packs at a time, without a division for each move.
// `Offset` is int where a walk goes less than 2^30 packs far: a longer piece then has no end in
// sight, and counts as one of 2^30.
template <typename Offset, int Step = THREADS>
struct Walk {
  int64 at;     // packs from the set's start in memory
  Offset left;  // packs from here to the piece's end
  Offset whole;
  Offset step;
  int64 step_at, gap;
  int piece,
      step_piece;  // pieces of one set are fewer than 2^31 where they have factors of their own

  __device__ __forceinline__ static Offset clip(int64 v) {
    if constexpr (sizeof(Offset) == 8) return v;
    return static_cast<Offset>(v < (1 << 30) ? v : 1 << 30);
  }
  __device__ __forceinline__ Walk(const SetsCall& call, int64 pack) {
    if constexpr (!(CONTIGUOUS && !PER_PIECE)) {
      whole = clip(call.piece);
      const int steps =
          Step < call.piece
              ? 0
              : static_cast<int>(static_cast<uint32>(Step) / static_cast<uint32>(call.piece));
      step = static_cast<Offset>(Step - steps * call.piece);
      gap = call.stride - call.piece;
      step_at = Step + steps * gap;
      step_piece = steps;
    }
    at = pack;
    if constexpr (CONTIGUOUS && !PER_PIECE) return;
    const int64 first = pack < call.piece ? 0 : divide(pack, call.piece);
    left = clip((first + 1) * call.piece - pack);
    at += first * gap;
    piece = static_cast<int>(first);
  }
  __device__ __forceinline__ void move() {
    if constexpr (CONTIGUOUS) {
      at += Step;
    } else {
      at += step_at;
    }
    if constexpr (CONTIGUOUS && !PER_PIECE) return;
    left -= step;
    if constexpr (PER_PIECE) piece += step_piece;
    if (left <= 0) {
      left += whole;
      if constexpr (!CONTIGUOUS) at += gap;
      if constexpr (PER_PIECE) ++piece;
    }
  }
  // The same walk, as one whose places the compiler finds again rather than hold them all in
  // registers.
  __device__ __forceinline__ Walk again() const {
    Walk w = *this;
    asm volatile("" : "+l"(w.at));
    if constexpr (CONTIGUOUS && !PER_PIECE) return w;
    if constexpr (sizeof(Offset) == 8) {
      asm volatile("" : "+l"(w.left));
    } else {
      asm volatile("" : "+r"(w.left));
    }
    return w;
  }
};

// What one thread holds of a set, or of a part of one: Items packs, THREADS apart, of which those
// before `end` are there (the first `Whole` are known to be). The others are zero and never
// counted.
template <int Items, int Whole = 0>
struct Tile {
  SetPack x[Items];
  int end, me;

  __device__ __forceinline__ explicit Tile(int packs)
      : end(packs), me(static_cast<int>(threadIdx.x)) {}
  __device__ __forceinline__ bool inside(int i) const {
    return i < Whole || me + i * THREADS < end;
  }

  template <Hint Load, bool Pinned = false, typename W>
  __device__ __forceinline__ void fetch(const DTYPE* set, W walk) {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      x[i] = kiln::load_if<Load, VEC, Pinned>(inside(i), set + walk.at * VEC);
      walk.move();
    }
  }
  // All of a set. The compiler would put off loads that may not be made.
  template <typename W>
  __device__ __forceinline__ void fetch_set(const SetsCall& call, int64 start, W walk) {
    constexpr bool partly = Whole < Items;
    fetch<Hint::stream, partly>(call.x + start, walk);
    if constexpr (partly) loads_before(call.sets > 0);
  }

  // Elements that this thread's warp holds.
  __device__ __forceinline__ float warp_count() const {
    const int warp_first = me & ~(warp_size - 1);
    int packs = Whole * warp_size;
#pragma unroll
    for (int i = Whole; i < Items; ++i) {
      const int left = end - warp_first - i * THREADS;
      packs += left < 0 ? 0 : left > warp_size ? warp_size : left;
    }
    return static_cast<float>(packs * VEC);
  }
  // The mean of the first packs of the warp's lanes: near enough to every value that sums around it
  // lose no digits.
  __device__ __forceinline__ float warp_pivot() const {
    const int left = Whole > 0 ? warp_size : end - (me & ~(warp_size - 1));
    const int packs = left < 0 ? 0 : left > warp_size ? warp_size : left;
    Chains plain;
    x[0].each([&](int j, float v) { plain.part[j % 4] += v; });
    const float total = lanes_sum<warp_size>(plain.total());
    return packs > 0 ? __fdividef(total, static_cast<float>(packs * VEC)) : 0.f;
  }
  // Adds this thread's values, less the pivot, and their squares.
  __device__ __forceinline__ void accumulate(float pivot, float& sum, float& square) const {
    Chains s, q;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (!inside(i)) continue;
      x[i].each([&](int j, float v) {
        const float d = v - pivot;
        s.part[(i + j) % 4] += d;
        q.part[(i + j) % 4] = __fmaf_rn(d, d, q.part[(i + j) % 4]);
      });
    }
    sum += s.total();
    square += q.total();
  }
  // The mean of the warp's first pack, with one exchange: as near as 16-bit results show
  // (README.md).
  __device__ __forceinline__ float pack_pivot() const {
    Chains plain;
    x[0].each([&](int j, float v) { plain.part[j % 4] += v; });
    return __shfl_sync(all_lanes, plain.total() * (1.f / VEC), 0);
  }
  // The moments of what the warp holds, in all lanes.
  __device__ __forceinline__ Moments moments() const {
    constexpr bool of_pack = sizeof(DTYPE) == 2 && VEC >= 8;
    const float pivot = of_pack ? pack_pivot() : warp_pivot();
    float sum = 0.f, square = 0.f;
    accumulate(pivot, sum, square);
    return {pivot, lanes_sum<warp_size>(sum), lanes_sum<warp_size>(square), warp_count()};
  }
};

// A value; 0 where it is not wanted. Not through the read-only path, where such loads took 0.05 to
// 0.2 us longer (H200).
template <typename T>
__device__ __forceinline__ float value_if(bool wanted, const T* p) {
  float v[1];
  load_if<Hint::plain, 1>(wanted, p).to(v);
  return v[0];
}

// How a set is normalised: (value - pivot) * rstd + shift.
struct __align__(16) SetStatistics {
  float pivot, offset, variance,
      rstd;  // mean = pivot + offset, kept apart: a large mean costs no digits of the rest
};

__device__ __forceinline__ SetStatistics statistics(const SetsCall& call, const Moments& m) {
  const float offset = m.sum * call.inverse_count;
  float variance = __fmaf_rn(-offset, offset, m.square * call.inverse_count);
  variance = variance < 0.f ? 0.f : variance;  // rounding only; NaN stays
  return {m.pivot, offset, variance, rsqrtf(variance + call.eps)};
}

// What a set's running statistics were. Asked for before a barrier, by the thread that publishes:
// they come from memory.
struct Running {
  float mean = 0.f, variance = 0.f;
  __device__ __forceinline__ Running(const SetsCall& call, int64 set, bool wanted) {
    if constexpr (!HAS_RUNNING) return;
    mean = value_if(wanted, call.running_mean + set);
    variance = value_if(wanted, call.running_var + set);
  }
};
// A running statistic, moved from what it was towards that of a set.
__device__ __forceinline__ float moved(const SetsCall& call, float towards, float was) {
  return __fmaf_rn(call.momentum, towards, (1.f - call.momentum) * was);
}

// Writes what a call wants to know of a set. By one thread.
__device__ __forceinline__ void publish(const SetsCall& call, int64 set, const SetStatistics& s,
                                        const Running& was) {
  const float mean = s.pivot + s.offset;
  const float unbiased = s.variance * call.unbias;
  if constexpr (HAS_STATISTICS) {
    if (call.mean != nullptr) call.mean[set] = mean;
    if (call.rstd != nullptr) call.rstd[set] = s.rstd;
    if (call.variance != nullptr) call.variance[set] = unbiased;
  }
  if constexpr (HAS_RUNNING) {
    call.running_mean[set] = moved(call, mean, was.mean);
    call.running_var[set] = moved(call, unbiased, was.variance);
  }
}

// The weight and bias of a set's pieces.
struct SetFactors {
  const FACTOR* weight;
  const FACTOR* bias;
  float scale, shift;  // of the set, or of the piece at hand

  __device__ __forceinline__ SetFactors()
      : weight(nullptr), bias(nullptr), scale(1.f), shift(0.f) {}
  __device__ __forceinline__ SetFactors(const SetsCall& call, int64 set) : SetFactors() {
    if constexpr (!HAS_WEIGHT && !HAS_BIAS) return;
    int64 group = set;
    if (call.groups != call.sets) {
      if constexpr (SMALL) {
        group = static_cast<uint32>(set) % static_cast<uint32>(call.groups);
      } else {
        group = set - divide(set, call.groups) * call.groups;
      }
    }
    const int64 first = PER_PIECE ? group * call.pieces : group;
    if constexpr (HAS_WEIGHT) weight = call.weight + first;
    if constexpr (HAS_BIAS) bias = call.bias + first;
    if constexpr (!PER_PIECE) load(0);
  }
  __device__ __forceinline__ void load(int64 piece) {
    if constexpr (HAS_WEIGHT) scale = value_if(true, weight + piece);
    if constexpr (HAS_BIAS) shift = value_if(true, bias + piece);
  }
};

// Writes the results for a tile. Rounds once.
template <int Items, int Whole, typename W>
__device__ __forceinline__ void give(const Tile<Items, Whole>& tile, DTYPE* set, W walk,
                                     const SetStatistics& s, SetFactors factors) {
  float scale = s.rstd * factors.scale;
  float shift = __fmaf_rn(-s.offset, scale, factors.shift);
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    if (tile.inside(i)) {
      if constexpr (PER_PIECE) {
        factors.load(walk.piece);
        scale = s.rstd * factors.scale;
        shift = __fmaf_rn(-s.offset, scale, factors.shift);
      }
      const SetPack y =
          tile.x[i].map([&](float v) { return __fmaf_rn(v - s.pivot, scale, shift); });
      kiln::store<Hint(STORE_HINT), VEC>(set + walk.at * VEC, y);
    }
    walk.move();
  }
}

}  // namespace kiln::norm
