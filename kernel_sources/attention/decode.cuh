// One block's part of a decode: TILE query heads that share a kv head, over a range of keys. A warp
// takes some keys at a time, a group of LANES lanes each; it keeps its own running softmax, and the
// block merges them once, at the end.
//
//   Q_DTYPE, KV_DTYPE   element types             DIM     elements of a head
//   GROUP               query heads of a kv head  TILE    those that a block takes
//   VEC                 elements of an access     WARPS   of a block
//   KEYS                keys that a lane has in flight
//   SCALE               of the scores             SOFTCAP their bound, 0 for none
//   ROPE                1: q is rotated
#pragma once

#include "kernel_sources/attention/decode_args.cuh"
#include "kernel_sources/attention/softmax.cuh"
#include "kernel_sources/device/dtype.cuh"
#include "kernel_sources/device/float8.cuh"
#include "kernel_sources/device/memory.cuh"
#include "kernel_sources/device/reduce.cuh"

static_assert(DIM >= 1 && DIM <= 1024, "a head has 1 to 1024 elements");
static_assert(GROUP >= 1 && TILE >= 1 && TILE <= 8, "a block takes 1 to 8 query heads");
static_assert(VEC >= 1 && VEC <= 8 && (VEC & (VEC - 1)) == 0 && DIM % VEC == 0,
              "an access never crosses a head's end");
static_assert(VEC * sizeof(KV_DTYPE) >= 2, "an access moves at least 2 bytes");
static_assert(WARPS >= 1 && WARPS <= 32 && KEYS >= 1 && KEYS <= 8, "sizes of a block's work");
static_assert(ROPE == 0 || ROPE == 1, "ROPE is a choice");

namespace kiln::attention {

inline constexpr int threads = WARPS * warp_size;
inline constexpr int packs = DIM / VEC;  // accesses of a head
inline constexpr int lanes =
    packs >= warp_size ? warp_size : round_up_to_power_of_two(packs);  // that share a key
inline constexpr int items = (packs + lanes - 1) / lanes;              // accesses of a lane
inline constexpr int held = items * VEC;        // elements of a head that a lane holds
inline constexpr int subs = warp_size / lanes;  // keys that a warp reads side by side
inline constexpr int tiles = (GROUP + TILE - 1) / TILE;
static_assert(TILE * held <= 64, "the query and the sums of a lane stay in registers");
inline constexpr int groups = WARPS * subs;  // of lanes, each with sums of its own

using Access = Words<VEC* static_cast<int>(sizeof(KV_DTYPE))>;

// The query heads of a block, and what its groups of lanes leave behind; room for the block's sums,
// too, in sums[0] and block_stats.
struct __align__(16) Shared {
  float q[TILE][DIM];
  float sums[groups][TILE][DIM];
  float stats[groups][TILE][2];
  __align__(8) float block_stats[TILE][2];
};

// Which heads and keys a block takes.
struct Task {
  int64 batch;
  int head_kv;
  int first_head;  // of the group
  int split;
  int64 begin, end;  // keys
};

// Task `index` of a grid in which splits lie together, then tiles, then kv heads, then sequences.
__device__ __forceinline__ Task task_at(const DecodeArgs& a, uint32 index) {
  Task task;
  const uint32 splits = static_cast<uint32>(a.splits), heads_kv = static_cast<uint32>(a.heads_kv);
  task.split = static_cast<int>(index % splits);
  index /= splits;
  task.first_head = static_cast<int>(index % tiles) * TILE;
  index /= tiles;
  task.head_kv = static_cast<int>(index % heads_kv);
  task.batch = index / heads_kv;
  task.begin = task.split * a.keys_of_split;
  task.end =
      task.begin + a.keys_of_split < a.seqlen_kv ? task.begin + a.keys_of_split : a.seqlen_kv;
  return task;
}

// Query head `t` of a task among all query heads of the call.
__device__ __forceinline__ int64 head_of(const DecodeArgs& a, const Task& task, int t) {
  return (task.batch * a.heads_kv + task.head_kv) * GROUP + task.first_head + t;
}
__device__ __forceinline__ bool has_head(const Task& task, int t) {
  return task.first_head + t < GROUP;
}

__device__ __forceinline__ float scale_of(const float* scales, const DecodeArgs& a,
                                          const Task& task) {
  return scales == nullptr ? 1.0f : scales[task.batch * a.heads_kv + task.head_kv];
}

__device__ __forceinline__ void to_floats(const Access& words, float* out) {
  if constexpr (sizeof(KV_DTYPE) == 1) {
#pragma unroll
    for (int i = 0; i < VEC / 2; ++i) {
      const FloatPair p = unpack_e4m3(words.w[i / 2] >> (i % 2 * 16) & 0xffffu);
      out[2 * i] = p.low;
      out[2 * i + 1] = p.high;
    }
  } else {
    Pack<KV_DTYPE, VEC>{words}.each([&](int i, float v) { out[i] = v; });
  }
}

// Element `d` of a query head, rotated where the call says so.
__device__ __forceinline__ float query_element(const DecodeArgs& a, const Q_DTYPE* q, int d) {
  const float x = to_float(q[d]);
  if constexpr (ROPE == 1) {
    const int pairs = a.rope_pairs;
    if (d < pairs) return x * a.rope_cos[d] - to_float(q[d + pairs]) * a.rope_sin[d];
    if (d < 2 * pairs)
      return x * a.rope_cos[d - pairs] + to_float(q[d - pairs]) * a.rope_sin[d - pairs];
  }
  return x;
}

// The query heads of a task with all scales in them; zeros for heads that are not there.
__device__ __forceinline__ void load_query(const DecodeArgs& a, const Task& task, Shared& shared) {
  const float scale = static_cast<float>(SCALE) * scale_of(a.k_scale, a, task);
#pragma unroll 1
  for (int e = static_cast<int>(threadIdx.x); e < TILE * DIM; e += threads) {
    const int t = e / DIM, d = e % DIM;
    const Q_DTYPE* head = static_cast<const Q_DTYPE*>(a.q) + head_of(a, task, t) * DIM;
    shared.q[t][d] = has_head(task, t) ? query_element(a, head, d) * scale : 0.0f;
  }
  __syncthreads();
}

// The scores of a key: each lane makes those of `kept` heads, for all lanes with the same share of
// the key's lanes; what follows from a score is made once, too, and then given to the others.
inline constexpr int padded = round_up_to_power_of_two(TILE);
inline constexpr int shares = padded < lanes ? padded : lanes;
inline constexpr int kept = padded / shares;

// Sums of v[0] to v[padded - 1] over the lanes of a key; a lane ends up with those of its heads, in
// v[0] to v[kept - 1]. At each exchange it gives away half of the sums it still has: 9 exchanges
// for 8 sums over 32 lanes, where lanes_sum, whose results are the same bit for bit, has 40.
__device__ __forceinline__ void sum_over_lanes(float (&v)[padded], int lane) {
#pragma unroll
  for (int parts = 2; parts <= shares; parts *= 2) {
    const bool upper = (lane & lanes / parts) != 0;
#pragma unroll
    for (int i = 0; i < padded / parts; ++i) {
      const float low = v[i], high = v[i + padded / parts];
      v[i] = (upper ? high : low) + __shfl_xor_sync(all_lanes, upper ? low : high, lanes / parts);
    }
  }
#pragma unroll
  for (int i = 0; i < kept; ++i) v[i] = lanes_sum<lanes / shares>(v[i]);
}

// The value for head `t`, from a lane that keeps it.
__device__ __forceinline__ float of_head(const float (&v)[kept], int t) {
  if constexpr (shares == 1) return v[t];
  return __shfl_sync(all_lanes, v[t % kept], t / kept * (lanes / shares), lanes);
}

// A lane's part of the work: its elements of the query heads and their sums, and the running
// softmax of the heads that it keeps.
struct Lane {
  float q[TILE][held];
  float sums[TILE][held];
  float max[kept];
  float weight[kept];
  int lane, sub;  // place within the lanes of a key; which of the warp's keys

  __device__ __forceinline__ void start(const Shared& shared) {
    lane = static_cast<int>(threadIdx.x) % lanes;
    sub = static_cast<int>(threadIdx.x) % warp_size / lanes;
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      max[i] = minus_infinity();
      weight[i] = 0;
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
#pragma unroll
      for (int i = 0; i < held; ++i) {
        const int d = element(i);
        q[t][i] = d < DIM ? shared.q[t][d] : 0.0f;
        sums[t][i] = 0;
      }
    }
  }

  // Place in a head of the i-th element that the lane holds; past the end where packs are fewer
  // than lanes.
  __device__ __forceinline__ int element(int i) const {
    return (i / VEC * lanes + lane) * VEC + i % VEC;
  }

  // The lane's accesses of a key or value; zeros beyond the head's end and where there is no key.
  __device__ __forceinline__ void read(const KV_DTYPE* head, bool present,
                                       Access (&words)[items]) const {
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const int pack = i * lanes + lane;
      if (present && pack < packs) {
        load_words<Hint::stream>(1, head + pack * VEC, words[i]);
      } else {
#pragma unroll
        for (auto& w : words[i].w) w = 0;
      }
    }
  }

  // The i-th head that the lane keeps; none where it is TILE or more.
  __device__ __forceinline__ int head(int i) const { return lane / (lanes / shares) * kept + i; }

  __device__ __forceinline__ void score(const Access (&words)[items], bool present,
                                        float (&scores)[kept]) const {
    float k[held], dots[padded] = {};
#pragma unroll
    for (int i = 0; i < items; ++i) to_floats(words[i], &k[i * VEC]);
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
#pragma unroll
      for (int i = 0; i < held; ++i) dots[t] += q[t][i] * k[i];
    }
    sum_over_lanes(dots, lane);
#pragma unroll
    for (int i = 0; i < kept; ++i) scores[i] = present ? score_of(dots[i]) : minus_infinity();
  }

  // Makes room for scores and turns them into weights, those of minus infinity into 0: where
  // nothing else has been seen there is no maximum to subtract.
  __device__ __forceinline__ void weigh(float (&scores)[KEYS][kept]) {
    float keep[kept];
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      float higher = max[i];
#pragma unroll
      for (int j = 0; j < KEYS; ++j) higher = fmaxf(higher, scores[j][i]);
      const float origin = higher == minus_infinity() ? 0.0f : higher;
      keep[i] = exp2f(max[i] - origin);
      max[i] = higher;
      weight[i] *= keep[i];
#pragma unroll
      for (int j = 0; j < KEYS; ++j) {
        scores[j][i] = exp2f(scores[j][i] - origin);
        weight[i] += scores[j][i];
      }
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      const float factor = of_head(keep, t);
#pragma unroll
      for (int i = 0; i < held; ++i) sums[t][i] *= factor;
    }
  }

  __device__ __forceinline__ void add(const Access (&words)[items], const float (&weights)[kept]) {
    float v[held];
#pragma unroll
    for (int i = 0; i < items; ++i) to_floats(words[i], &v[i * VEC]);
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      const float w = of_head(weights, t);
#pragma unroll
      for (int i = 0; i < held; ++i) sums[t][i] += w * v[i];
    }
  }
};

// All keys of a task into one lane's sums.
__device__ __forceinline__ void attend(const DecodeArgs& a, const Task& task, Lane& lane) {
  const KV_DTYPE* k = static_cast<const KV_DTYPE*>(a.k) + task.batch * a.k_batch_stride +
                      task.head_kv * a.k_head_stride;
  const KV_DTYPE* v = static_cast<const KV_DTYPE*>(a.v) + task.batch * a.v_batch_stride +
                      task.head_kv * a.v_head_stride;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  constexpr int step = WARPS * subs * KEYS;
  // The same number of turns for all threads: lanes exchange scores.
  for (int64 base = task.begin; base < task.end; base += step) {
    Access k_words[KEYS][items], v_words[KEYS][items];
    bool present[KEYS];
#pragma unroll
    for (int j = 0; j < KEYS; ++j) {
      const int64 key = base + (j * WARPS + warp) * subs + lane.sub;
      present[j] = key < task.end;
      lane.read(k + key * a.k_key_stride, present[j], k_words[j]);
      lane.read(v + key * a.v_key_stride, present[j], v_words[j]);
    }
    float scores[KEYS][kept];
#pragma unroll
    for (int j = 0; j < KEYS; ++j) lane.score(k_words[j], present[j], scores[j]);
    lane.weigh(scores);
#pragma unroll
    for (int j = 0; j < KEYS; ++j) lane.add(v_words[j], scores[j]);
  }
}

// Adds up the lanes' sums and calls take(head, element, sum, max, weight) for each element of the
// task's heads, each by one thread, which may then write to shared.sums[0].
template <class Take>
__device__ __forceinline__ void merge(const Task& task, const Lane& lane, Shared& shared,
                                      Take take) {
  const int group = static_cast<int>(threadIdx.x) / warp_size * subs + lane.sub;
#pragma unroll
  for (int i = 0; i < kept; ++i) {
    if (lane.lane % (lanes / shares) == 0 && lane.head(i) < TILE) {
      shared.stats[group][lane.head(i)][0] = lane.max[i];
      shared.stats[group][lane.head(i)][1] = lane.weight[i];
    }
  }
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (lane.element(i) < DIM) shared.sums[group][t][lane.element(i)] = lane.sums[t][i];
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int e = static_cast<int>(threadIdx.x); e < TILE * DIM; e += threads) {
    const int t = e / DIM, d = e % DIM;
    if (!has_head(task, t)) break;
    float max = minus_infinity(), sum = 0, weight = 0;
#pragma unroll 1
    for (int g = 0; g < groups; ++g) max = fmaxf(max, shared.stats[g][t][0]);
#pragma unroll 1
    for (int g = 0; g < groups; ++g) {
      const float keep = weight_of(shared.stats[g][t][0], max);
      sum += keep * shared.sums[g][t][d];
      weight += keep * shared.stats[g][t][1];
    }
    take(t, d, sum, max, weight);
  }
}

// sum / weight; 0 where there were no keys.
__device__ __forceinline__ float mean_of(float sum, float weight) {
  return weight == 0 ? 0.0f : sum / weight;
}

// A block's part of a call, whose result goes to `out` when the keys are not split, else to its own
// place among the partial ones.
__device__ __forceinline__ void decode(const DecodeArgs& a, Shared& shared) {
  const Task task = task_at(a, blockIdx.x);
  load_query(a, task, shared);
  Lane lane;
  lane.start(shared);
  attend(a, task, lane);
  const float v_scale = scale_of(a.v_scale, a, task);
  merge(task, lane, shared, [&](int t, int d, float sum, float max, float weight) {
    const int64 head = head_of(a, task, t);
    if (a.splits == 1) {
      static_cast<Q_DTYPE*>(a.out)[head * DIM + d] =
          from_float<Q_DTYPE>(mean_of(sum, weight) * v_scale);
      return;
    }
    const int64 place = head * a.splits + task.split;
    a.partial_sums[place * DIM + d] = sum;
    if (d == 0) {
      a.partial_stats[place * 2] = max;
      a.partial_stats[place * 2 + 1] = weight;
    }
  });
}

}  // namespace kiln::attention
