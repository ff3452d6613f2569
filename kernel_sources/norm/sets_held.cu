// Few and large sets, each held on chip between its statistics and its result: memory is read once.
// A set is cut into parts, and the parts of all sets are one queue. Persistent blocks take the next
// part whenever their ring in shared memory has room for one, so a multiprocessor with more
// bandwidth than others moves more, and nobody waits for the slowest. The threads of a block have
// four roles, and no role waits for another but through the barriers of the ring's slots:
//
//   full    a part has arrived        the warp that copies -> those that add up, and that give
//   added   its moments are known     the warps that add up -> those that publish and that gather
//   known   so are its set's          the warps that publish and that gather -> those that give
//   empty   its slot is free          the warps that give -> the one that copies
//
// No deadlock. All blocks run at once: the grid is at most one block a multiprocessor, each of
// which has room for one by its threads, registers (launch bounds) and shared memory (SLOTS follows
// from the device's budget); and the launch is cooperative, so that a device of which something
// else holds a part runs all blocks or refuses them. A part is taken only once a slot is free for
// it; from there to its published moments nothing waits for another block. Parts are taken set by
// set, and a block's slots are filled, added up, given and freed in one order. Consider the first
// set that is not written yet. If all its parts are taken, all are published; each block's oldest
// slot holds one of them or none, so all are written. If not, all slots in use hold parts of this
// set: fewer than it has parts, and the host sees to it that the slots of all blocks are no fewer.
// So some block has a free slot, and takes the next part.
//
// No role is more than one round of the ring ahead of another, so the parity of a phase tells which
// it is: the next phase of `full` needs `empty`, which needs all that give, which need `known`,
// which needs all that publish and gather, which need `added`.
//
// Moments are published as one word of 16 bytes that is zero until then; what is read of it is
// whole, so nothing needs a fence. All blocks put together the same words in the same order: who
// took which part changes no bit.
//
//   THREADS    threads that add up, and as many that give
//   ITEMS      packs of a part that each of them has: a part is THREADS * ITEMS packs
//   SLOTS      parts in the ring, of dynamic shared memory
//   SHARE      parts of a set for each lane of the warp that gathers them, at most
#include "kernel_sources/device/bulk.cuh"
#include "kernel_sources/norm/sets.cuh"

static_assert(VEC * sizeof(DTYPE) == 16, "copies move multiples of 16 bytes");
static_assert(ITEMS >= 1 && ITEMS <= 16, "packs of a part that a thread has");
static_assert(SLOTS >= 3 && SLOTS <= 64, "a part at work, one that waits, the next on its way");
static_assert(SHARE >= 1 && SHARE <= 16, "registers of a lane hold its share of a set");
static_assert(THREADS <= 448, "two groups of threads and four warps");

using namespace kiln;
using namespace kiln::norm;

// The host's copy is HeldPlan in sets.h: both change together.
struct HeldPlan {
  Moments* moments;  // [sets, parts], zeros
  uint32* taken;     // parts of all sets, zero
  uint32 parts;      // of a set
  uint32 total;      // of all sets
};

namespace {

constexpr int part_packs = THREADS * ITEMS;
constexpr int warps_adding = THREADS / warp_size;
constexpr int gatherers = 2;    // warps, which share the sets
constexpr int taken_ahead = 4;  // parts taken at once, at most
constexpr uint32 no_set = 0xffffffffu;

struct Part {
  uint32 set;  // `no_set` after the last
  uint32 number;
};

// How a set is normalised, with the factors that all its pieces share.
struct __align__(16) Result {
  SetStatistics statistics;
  float scale, shift;
};

struct Shared {
  Moments warps[SLOTS][warps_adding];
  Result results[SLOTS];
  Part parts[SLOTS];
  Barrier full[SLOTS], empty[SLOTS], added[SLOTS], known[SLOTS];
};
static_assert(sizeof(Shared) <= SLOTS * (warps_adding * 16 + 80), "what the host reckons with");

__device__ __forceinline__ SetPack* slot_at(int slot) {
  extern __shared__ __align__(128) uint4 lines_of_smem[];
  return reinterpret_cast<SetPack*>(lines_of_smem) + slot * part_packs;
}
__device__ __forceinline__ int lane_of() { return static_cast<int>(threadIdx.x) % warp_size; }

// Packs of a part.
__device__ __forceinline__ int length_of(const SetsCall& call, const Part& part) {
  const int64 left = call.pieces * call.piece - static_cast<int64>(part.number) * part_packs;
  return left < part_packs ? static_cast<int>(left) : part_packs;
}

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

// The moments of a whole set, once all its parts are published. First the mean, then the squares
// around it, so that nothing depends on how far the parts' means lie apart.
__device__ __forceinline__ Moments set_moments(const Moments* set, int parts) {
  const int lane = lane_of();
  // The last is taken last: who asks for it alone asks for the others about once.
  if (parts > warp_size)
    while (look_at_moments(set + parts - 1).count == 0.f) {
    }
  Moments part[SHARE];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int i = 0; i < SHARE; ++i) {
      part[i] = {0.f, 0.f, 0.f, 0.f};
      const int at = lane + i * warp_size;
      if (at < parts) part[i] = look_at_moments(set + at);
    }
#pragma unroll
    for (int i = 0; i < SHARE; ++i) missing |= lane + i * warp_size < parts && part[i].count == 0.f;
  } while (__any_sync(all_lanes, missing));
  const float first = __shfl_sync(all_lanes, part[0].pivot, 0);
  float sum = 0.f, total = 0.f;
#pragma unroll
  for (int i = 0; i < SHARE; ++i) {
    if (lane + i * warp_size >= parts) continue;
    sum += __fmaf_rn(part[i].count, part[i].pivot - first, part[i].sum);
    total += part[i].count;
  }
  total = lanes_sum<warp_size>(total);
  const float pivot = first + lanes_sum<warp_size>(sum) / total;
  float rest = 0.f, square = 0.f;
#pragma unroll
  for (int i = 0; i < SHARE; ++i) {
    if (lane + i * warp_size >= parts) continue;
    const float move = part[i].pivot - pivot;
    const float moved = __fmaf_rn(part[i].count, move, part[i].sum);
    rest += moved;
    square += __fmaf_rn(move, part[i].sum + moved, part[i].square);
  }
  return {pivot, lanes_sum<warp_size>(rest), lanes_sum<warp_size>(square), total};
}

// Has a part brought into its slot. By one warp.
__device__ __forceinline__ void copy_part(const SetsCall& call, const Part& part, int slot,
                                          Shared& shared) {
  const int lane = lane_of();
  const int64 begin = static_cast<int64>(part.number) * part_packs;
  const int length = length_of(call, part);
  const DTYPE* const x = call.x + part.set * call.set_stride * VEC;
  SetPack* const to = slot_at(slot);
  if (lane == 0) {
    shared.parts[slot] = part;
    shared.full[slot].arrive_expecting(static_cast<uint32>(length) * 16);
  }
  __syncwarp();
  if constexpr (CONTIGUOUS) {
    if (lane == 0)
      bulk_copy(to, x + begin * VEC, static_cast<uint32>(length) * 16, shared.full[slot]);
  } else {
    const int64 end = begin + length;
#pragma unroll 1
    for (int64 piece = divide(begin, call.piece) + lane; piece * call.piece < end;
         piece += warp_size) {
      const int64 start = piece * call.piece;
      const int64 from = start < begin ? begin : start;
      const int64 until = start + call.piece < end ? start + call.piece : end;
      bulk_copy(to + (from - begin), x + (piece * call.stride + from - start) * VEC,
                static_cast<uint32>(until - from) * 16, shared.full[slot]);
    }
  }
}

// The warp that copies. It takes as many parts at once as have room, so that it waits for the
// queue's counter less often than parts are due.
__device__ __forceinline__ void copy_parts(const SetsCall& call, const HeldPlan& plan,
                                           Shared& shared) {
  RingPlace<SLOTS> at;
  at.parity = 1;  // the phase before the first counts as over
  for (;;) {
    shared.empty[at.slot].wait(at.parity);
    RingPlace<SLOTS> ahead = at;
    uint32 room = 1;
#pragma unroll 1
    for (ahead.next(); room < taken_ahead; ++room, ahead.next())
      if (!__all_sync(all_lanes, shared.empty[ahead.slot].test(ahead.parity))) break;
    uint32 number = 0;
    if (lane_of() == 0) number = atomicAdd(plan.taken, room);
    number = __shfl_sync(all_lanes, number, 0);
#pragma unroll 1
    for (; room > 0; --room, ++number, at.next()) {
      if (number >= plan.total) {
        if (lane_of() == 0) {
          shared.parts[at.slot] = {no_set, 0};
          shared.full[at.slot].arrive();
        }
        return;
      }
      const uint32 set = number / plan.parts;
      copy_part(call, {set, number - set * plan.parts}, at.slot, shared);
    }
  }
}

// The warps that add up parts as they arrive.
__device__ __forceinline__ void add_up(const SetsCall& call, Shared& shared) {
  const int me = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (RingPlace<SLOTS> at;; at.next()) {
    shared.full[at.slot].wait(at.parity);
    const Part part = shared.parts[at.slot];
    if (part.set != no_set) {
      Tile<ITEMS> tile(length_of(call, part), me);
      tile.take(slot_at(at.slot));
      const Moments own = tile.moments();
      if (lane_of() == 0) shared.warps[at.slot][me / warp_size] = own;
    }
    __syncwarp();
    if (lane_of() == 0) shared.added[at.slot].arrive();
    if (part.set == no_set) return;
  }
}

// The warp that publishes the moments of parts. It never waits for other blocks.
__device__ __forceinline__ void publish_parts(const HeldPlan& plan, Shared& shared) {
#pragma unroll 1
  for (RingPlace<SLOTS> at;; at.next()) {
    shared.added[at.slot].wait(at.parity);
    const Part part = shared.parts[at.slot];
    if (part.set == no_set) return;
    const Moments own = merge<true, warps_adding>(shared.warps[at.slot]);
    __syncwarp();
    if (lane_of() == 0) {
      give_moments(plan.moments + static_cast<int64>(part.set) * plan.parts + part.number, own);
      shared.known[at.slot].arrive();
    }
  }
}

// A warp that gathers the moments of every set `turn`, `turn + gatherers`, ... of which this block
// has a part, and makes the set's statistics: once, as a block's parts of a set follow each other.
__device__ __forceinline__ void gather_sets(const SetsCall& call, const HeldPlan& plan,
                                            Shared& shared, uint32 turn) {
  uint32 last = no_set;
  Result result{};
#pragma unroll 1
  for (RingPlace<SLOTS> at;; at.next()) {
    shared.added[at.slot].wait(at.parity);
    const Part part = shared.parts[at.slot];
    if (part.set == no_set) return;
    if (part.set % gatherers == turn) {
      if (part.set != last) {
        last = part.set;
        const bool first = part.number == 0 && lane_of() == 0;
        const Running was(call, part.set, first);
        float scale = 1.f, shift = 0.f;
        if constexpr (!PER_PIECE) {
          const SetFactors factors(call, part.set);
          scale = factors.scale;
          shift = factors.shift;
        }
        const Moments* const moments = plan.moments + static_cast<int64>(part.set) * plan.parts;
        result = {statistics(call, set_moments(moments, static_cast<int>(plan.parts))), scale,
                  shift};
        if (first) publish(call, part.set, result.statistics, was);
      }
      if (lane_of() == 0) shared.results[at.slot] = result;
    }
    __syncwarp();
    if (lane_of() == 0) shared.known[at.slot].arrive();
  }
}

// The warps that normalise parts and free their slots.
__device__ __forceinline__ void give_parts(const SetsCall& call, Shared& shared) {
  const int me = static_cast<int>(threadIdx.x) - THREADS;
  Walk<int> walk(call, me);
#pragma unroll 1
  for (RingPlace<SLOTS> at;; at.next()) {
    shared.full[at.slot].wait(at.parity);
    const Part part = shared.parts[at.slot];
    if (part.set == no_set) return;
    walk.go_to(call, static_cast<int64>(part.number) * part_packs + me);
    DTYPE* const y = call.y + part.set * call.set_stride * VEC;
    shared.known[at.slot].wait(at.parity);
    const Result result = shared.results[at.slot];
    SetFactors factors(result.scale, result.shift);
    if constexpr (PER_PIECE) factors = SetFactors(call, part.set);
    Tile<ITEMS> tile(length_of(call, part), me);
    tile.take(slot_at(at.slot));
    __syncwarp();
    if (lane_of() == 0) shared.empty[at.slot].arrive();
    give(tile, y, walk, result.statistics, factors);
  }
}

}  // namespace

// Launched before `sets_held`: `count` words to zero, those of the moments and the counter's.
extern "C" __global__ void __launch_bounds__(256) sets_held_begin(uint4* words, int64 count) {
  const int64 i = static_cast<int64>(blockIdx.x) * 256 + threadIdx.x;
  if (i < count) words[i] = make_uint4(0, 0, 0, 0);
}

// Grid: all blocks at once. Two groups of THREADS and a warp each that copies and that publishes,
// then those that gather.
extern "C" __global__ void __launch_bounds__(2 * THREADS + (2 + gatherers) * warp_size, 1)
    sets_held(SetsCall call, HeldPlan plan) {
  __shared__ Shared shared;
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 0; i < SLOTS; ++i) {
      shared.full[i].init(1);
      shared.added[i].init(warps_adding);
      shared.known[i].init(1 + gatherers);
      shared.empty[i].init(warps_adding);
    }
    fence_barriers();
  }
  __syncthreads();
  if (threadIdx.x < THREADS) return add_up(call, shared);
  if (threadIdx.x < 2 * THREADS) return give_parts(call, shared);
  const uint32 warp = (threadIdx.x - 2 * THREADS) / warp_size;
  if (warp == 0) return copy_parts(call, plan, shared);
  if (warp == 1) return publish_parts(plan, shared);
  gather_sets(call, plan, shared, warp - 2);
}
