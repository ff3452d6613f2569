// Few and large sets, each held on chip between its statistics and its result: memory is read once.
// A set is cut into parts, and the parts of all sets are one queue. Persistent blocks take the next
// part whenever their ring in shared memory has room for one, so a multiprocessor with more
// bandwidth than others moves more, and nobody waits for the slowest. The warps of a block have
// roles, and no role waits for another but through the barriers of the ring's slots:
//
//   full     a part has arrived       the warp that copies -> those that add up
//   added    its moments are known    the warps that add up -> those that publish and that gather
//   known    so are its set's         those that publish and that gather -> those that give
//   written  its slot has its result  the warps that give -> the one that stores (STORER)
//   empty    its slot is free         the warp that stores, else those that give -> the one that
//                                     copies
//
// No deadlock. All blocks run at once: the grid is at most one block a multiprocessor, each of
// which has room for one by its threads, registers (launch bounds) and shared memory (SLOTS follows
// from the device's budget); and the launch is cooperative, so that a device of which something
// else holds a part runs all blocks or refuses them. A part is taken only once a slot is free for
// it; from there to its published moments nothing waits for another block. Parts are taken set by
// set (the first SLOTS of each block with the launch: its slots are free), and a block's slots are
// filled, added up, given and freed in one order. Consider the first set that is not written yet.
// If all its parts are taken, all are published; each block's oldest slot holds one of them or
// none, so all are written. If not, all slots in use hold parts of this set: fewer than it has
// parts, and the host sees to it that the slots of all blocks are no fewer. So some block has a
// free slot, and takes the next part.
//
// No role is more than one round of the ring ahead of another, so the parity of a phase tells which
// it is: the next phase of `full` needs `empty`, which needs the warp that stores, which needs
// `written` and so all that give, which need `known`, which needs all that publish and gather,
// which need `added`. The warp that stores waits for its own copies only, and for these only until
// they are read from the slot.
//
// All blocks put together the same moments in the same order (published_moments.cuh): who took
// which part changes no bit.
//
//   THREADS    threads that add up, and as many that give
//   ITEMS      packs of a part that each of them has: a part is THREADS * ITEMS packs
//   UNROLL     those of them at once
//   SLOTS      parts in the ring, of dynamic shared memory
//   STORER     1: results go back into their slot, from which a warp has them copied to memory
//              0: the threads that give store them
//   LOAD_HINT  kiln::Hint of the parts' copies: `keep`, or with a STORER `hold`
#include "kernel_sources/device/bulk.cuh"
#include "kernel_sources/norm/published_moments.cuh"
#include "kernel_sources/norm/sets.cuh"

static_assert(VEC * sizeof(DTYPE) == 16, "copies move multiples of 16 bytes");
static_assert(ITEMS >= 1 && ITEMS <= 16, "packs of a part that a thread has");
static_assert(SLOTS >= 3 && SLOTS <= 64, "a part at work, one that waits, the next on its way");
static_assert(UNROLL >= 1 && ITEMS % UNROLL == 0, "a part is so many packs at once, several times");
static_assert(STORER == 0 || STORER == 1, "STORER is a choice");
static_assert(LOAD_HINT == 0 || (LOAD_HINT == 3 && STORER == 1), "the warp that stores lets go");
static_assert(2 * THREADS + (3 + STORER) * 32 <= 1024, "two groups of threads and the other warps");

using namespace kiln;
using namespace kiln::norm;

// The host's copy is HeldPlan in sets.h: both change together.
struct HeldPlan {
  Moments* moments;  // [sets, parts], zeros
  uint64* taken;     // parts of all sets but those dealt out, zero
  uint32 parts;      // of a set
  uint32 total;      // of all sets
};

namespace {

constexpr int warp_packs = warp_size * ITEMS;  // of a part, neighbours
constexpr int part_packs = THREADS * ITEMS;
constexpr int warps_adding = THREADS / warp_size;
constexpr int taken_ahead = 4;  // parts taken at once, at most
constexpr uint32 no_set = 0xffffffffu;

struct __align__(16) Part {
  uint32 set;  // `no_set` after the last
  uint32 number;
  int packs;
};

// How a part is normalised: (value - pivot) * scale + shift. Where pieces have factors of their
// own, scale and shift are the set's rstd and offset.
struct __align__(16) Result {
  float pivot, scale, shift;
  int packs;  // 0 after the last part
};

struct Shared {
  Moments warps[SLOTS][warps_adding];
  Result results[SLOTS];
  Part parts[SLOTS];
  Barrier full[SLOTS], empty[SLOTS], added[SLOTS], known[SLOTS], written[SLOTS];
};
static_assert(sizeof(Shared) <= SLOTS * (warps_adding * 16 + 80), "what the host reckons with");

__device__ __forceinline__ SetPack* slot_at(int slot) {
  extern __shared__ __align__(128) uint4 lines_of_smem[];
  return reinterpret_cast<SetPack*>(lines_of_smem) + slot * part_packs;
}

// Calls `f` with each run of packs of a part that is one in memory: where it begins in the part and
// in memory, its packs. By one warp, a run each lane.
template <typename F>
__device__ __forceinline__ void each_run(const SetsCall& call, const Part& part, F f) {
  const int lane = lane_of();
  const int64 begin = static_cast<int64>(part.number) * part_packs;
  const int64 set = part.set * call.set_stride;
  if constexpr (CONTIGUOUS) {
    if (lane == 0) f(0, set + begin, static_cast<uint32>(part.packs));
  } else {
    const int64 end = begin + part.packs;
#pragma unroll 1
    for (int64 piece = divide(begin, call.piece) + lane; piece * call.piece < end;
         piece += warp_size) {
      const int64 start = piece * call.piece;
      const int64 from = start < begin ? begin : start;
      const int64 until = start + call.piece < end ? start + call.piece : end;
      f(static_cast<int>(from - begin), set + piece * call.stride + from - start,
        static_cast<uint32>(until - from));
    }
  }
}

// Whether Hint::hold is meant: all runs of packs begin and end with lines.
__device__ __forceinline__ bool holds_lines(const SetsCall& call) {
  return ((static_cast<uint32>(reinterpret_cast<uint64>(call.x)) >> 4 |
           static_cast<uint32>(call.set_stride) | static_cast<uint32>(call.piece) |
           static_cast<uint32>(call.stride)) &
          7) == 0;
}

// Has a part brought into its slot. By one warp.
__device__ __forceinline__ void copy_part(const SetsCall& call, const Part& part, int slot,
                                          bool holds, Shared& shared) {
  if (lane_of() == 0) {
    shared.parts[slot] = part;
    shared.full[slot].arrive_expecting(static_cast<uint32>(part.packs) * 16);
  }
  __syncwarp();
  each_run(call, part, [&](int at, int64 from, uint32 packs) {
    bulk_copy<Hint(LOAD_HINT)>(slot_at(slot) + at, call.x + from * VEC, packs * 16,
                               shared.full[slot], holds);
  });
}

// The queue's counter as it was. Of 64 bits, for which the assembler does not add up over a warp's
// lanes first.
__device__ __forceinline__ uint32 take_parts(uint64* taken, uint32 parts) {
  uint64 was;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(was)
               : "l"(taken), "l"(static_cast<uint64>(parts))
               : "memory");
  return static_cast<uint32>(was);
}

// The warp that copies. The first parts, for which all slots have room, are dealt out: nobody waits
// for the queue's counter before there is something to do. Later it takes as many parts at once as
// have room, so that it waits for the counter less often than parts are due.
__device__ __forceinline__ void copy_parts(const SetsCall& call, const HeldPlan& plan,
                                           Shared& shared) {
  const int64 packs = call.pieces * call.piece;
  const bool holds = holds_lines(call);
  RingPlace<SLOTS> at;
  at.parity = 1;  // the phase before the first counts as over
  for (bool first = true;; first = false) {
    shared.empty[at.slot].wait(at.parity);
    const uint32 most = first ? SLOTS : taken_ahead;
    RingPlace<SLOTS> ahead = at;
    uint32 room = 1;
#pragma unroll 1
    for (ahead.next(); room < most; ++room, ahead.next())
      if (!__all_sync(all_lanes, first || shared.empty[ahead.slot].test(ahead.parity))) break;
    const uint32 step = first ? gridDim.x : 1;
    uint32 number = blockIdx.x;
    if (!first && lane_of() == 0) number = SLOTS * gridDim.x + take_parts(plan.taken, room);
    number = __shfl_sync(all_lanes, number, 0);
#pragma unroll 1
    for (; room > 0; --room, number += step, at.next()) {
      if (number >= plan.total) {
        if (lane_of() == 0) {
          shared.parts[at.slot] = {no_set, 0, 0};
          shared.full[at.slot].arrive();
        }
        return;
      }
      const uint32 set = number / plan.parts;
      const uint32 of_set = number - set * plan.parts;
      const int64 left = packs - static_cast<int64>(of_set) * part_packs;
      copy_part(call, {set, of_set, left < part_packs ? static_cast<int>(left) : part_packs},
                at.slot, holds, shared);
    }
  }
}

// The warps that add up parts as they arrive.
__device__ __forceinline__ void add_up(Shared& shared) {
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
#pragma unroll 1
  for (RingPlace<SLOTS> at;; at.next()) {
    shared.full[at.slot].wait(at.parity);
    const Part part = shared.parts[at.slot];
    if (part.set != no_set) {
      const int left = part.packs - warp * warp_packs;
      warp_moments<true, UNROLL>(slot_at(at.slot) + warp * warp_packs + lane_of(),
                                 left < warp_packs ? left : warp_packs,
                                 shared.warps[at.slot][warp]);
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
    if (part.set != no_set) {
      const Moments own = merge<true, warps_adding>(shared.warps[at.slot]);
      if (lane_of() == 0)
        give_moments(plan.moments + static_cast<int64>(part.set) * plan.parts + part.number, own,
                     __float_as_uint(own.count));
    }
    __syncwarp();
    if (lane_of() == 0) shared.known[at.slot].arrive();
    if (part.set == no_set) return;
  }
}

// Gathers the moments of a part's set and makes of them how it is normalised. Whoever has its first
// part publishes what the call wants to know of it.
__device__ __forceinline__ Result gathered(const SetsCall& call, const HeldPlan& plan,
                                           const Part& part) {
  const bool first = part.number == 0 && lane_of() == 0;
  const Running was(call, part.set, first);
  float scale = 1.f, shift = 0.f;
  if constexpr (!PER_PIECE) {
    const SetFactors factors(call, part.set);
    scale = factors.scale;
    shift = factors.shift;
  }
  const Moments* const moments = plan.moments + static_cast<int64>(part.set) * plan.parts;
  const SetStatistics s =
      statistics(call, gather_moments(moments, static_cast<int>(plan.parts),
                                      static_cast<float>(call.pieces * call.piece * VEC),
                                      [](int, Moments& m) { return m.count != 0.f; }));
  if (first) publish(call, part.set, s, was);
  if constexpr (PER_PIECE) return {s.pivot, s.rstd, s.offset, 0};
  scale *= s.rstd;
  return {s.pivot, scale, __fmaf_rn(-s.offset, scale, shift), 0};
}

// The warp that gathers the moments of every set of which this block has a part, and makes the
// set's statistics: once, as a block's parts of a set follow each other. One warp: two looked at
// twice as many moments at once, and that took 2 to 3 % of a call's time (H200).
__device__ __forceinline__ void gather_sets(const SetsCall& call, const HeldPlan& plan,
                                            Shared& shared) {
  uint32 last = no_set;
  Result result{};
#pragma unroll 1
  for (RingPlace<SLOTS> at;; at.next()) {
    shared.added[at.slot].wait(at.parity);
    const Part part = shared.parts[at.slot];
    if (part.set != last && part.set != no_set) result = gathered(call, plan, part);
    last = part.set;
    result.packs = part.packs;
    __syncwarp();
    if (lane_of() == 0) {
      shared.results[at.slot] = result;
      shared.known[at.slot].arrive();
    }
    if (part.set == no_set) return;
  }
}

// The factors of the packs of a part that a thread has, where pieces have factors of their own.
struct PieceFactors {
  Walk<int, warp_size> walk;
  SetFactors factors;
  int left;  // packs from here to the part's end

  __device__ __forceinline__ PieceFactors(const SetsCall& call, const Part& part, int first)
      : walk(call, static_cast<int64>(part.number) * part_packs + first),
        factors(call, part.set),
        left(part.packs - first) {}
  __device__ __forceinline__ void next(const Result& result, float& scale, float& shift) {
    if (left > 0) factors.load(walk.piece);
    left -= warp_size;
    walk.move();
    scale = result.scale * factors.scale;
    shift = __fmaf_rn(-result.shift, scale, factors.shift);
  }
};

// The warps that normalise parts: each has neighbouring packs. What lies behind a short part's end
// is normalised, too, and goes nowhere.
__device__ __forceinline__ void give_parts(const SetsCall& call, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x) - THREADS;
  const int first = thread / warp_size * warp_packs + lane_of();
#pragma unroll 1
  for (RingPlace<SLOTS> at;; at.next()) {
    shared.known[at.slot].wait(at.parity);
    const Result result = shared.results[at.slot];
    if (result.packs > 0) {
      SetPack* const mine = slot_at(at.slot) + first;
      const Part part = shared.parts[at.slot];
      PieceFactors factors(call, part, first);
      Walk<int, warp_size> walk(call, static_cast<int64>(part.number) * part_packs + first);
      DTYPE* const y = call.y + start_of(call, part.set);
      float scale = result.scale, shift = result.shift;
#pragma unroll 1
      for (int i = 0; i < ITEMS; i += UNROLL) {
        SetPack x[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) x[k] = mine[(i + k) * warp_size];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
          if constexpr (PER_PIECE) factors.next(result, scale, shift);
          const SetPack out =
              x[k].map([&](float v) { return __fmaf_rn(v - result.pivot, scale, shift); });
          if constexpr (STORER) {
            mine[(i + k) * warp_size] = out;
          } else {
            if (first + (i + k) * warp_size < result.packs)
              kiln::store<Hint(STORE_HINT), VEC>(y + walk.at * VEC, out);
            walk.move();
          }
        }
      }
    }
    if constexpr (STORER) fence_copies();
    __syncwarp();
    if (lane_of() == 0) (STORER ? shared.written : shared.empty)[at.slot].arrive();
    if (result.packs == 0) return;
  }
}

// Lets go of the lines of a part.
__device__ __forceinline__ void let_go_of(const SetsCall& call, const Part& part) {
  const int64 begin = static_cast<int64>(part.number) * part_packs;
#pragma unroll 1
  for (int i = lane_of() * 8; i < part.packs; i += 8 * warp_size) {
    int64 at = begin + i;
    if constexpr (!CONTIGUOUS) at += divide(at, call.piece) * (call.stride - call.piece);
    let_go(call.x + (part.set * call.set_stride + at) * VEC);
  }
}

// The warp that has results copied from their slots to memory. It also lets go of what was held: it
// has the time.
__device__ __forceinline__ void store_parts(const SetsCall& call, const HeldPlan& plan,
                                            Shared& shared) {
  const bool holds = Hint(LOAD_HINT) == Hint::hold && holds_lines(call);
#pragma unroll 1
  for (RingPlace<SLOTS> at;; at.next()) {
    shared.written[at.slot].wait(at.parity);
    const Part part = shared.parts[at.slot];
    if (part.set == no_set) return;
    each_run(call, part, [&](int from, int64 to, uint32 packs) {
      bulk_store(call.y + to * VEC, slot_at(at.slot) + from, packs * 16);
    });
    wait_for_copies();
    __syncwarp();
    if (lane_of() == 0) shared.empty[at.slot].arrive();
    if (holds &&
        must_let_go<int64>(part.set * plan.parts + part.number, plan.total, part_packs * 16))
      let_go_of(call, part);
  }
}

}  // namespace

// Launched before `sets_held`: `count` words to zero, those of the moments and the counter's.
extern "C" __global__ void __launch_bounds__(256) sets_held_begin(uint4* words, int64 count) {
  clear_words(words, count);
}

// Grid: all blocks at once. Two groups of THREADS and a warp each that copies and that publishes,
// then one that gathers, and the one that stores.
extern "C" __global__ void __launch_bounds__(2 * THREADS + (3 + STORER) * warp_size, 1)
    sets_held(SetsCall call, HeldPlan plan) {
  __shared__ Shared shared;
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 0; i < SLOTS; ++i) {
      shared.full[i].init(1);
      shared.added[i].init(warps_adding);
      shared.known[i].init(2);
      shared.written[i].init(warps_adding);
      shared.empty[i].init(STORER ? 1 : warps_adding);
    }
    fence_barriers();
  }
  __syncthreads();
  if (threadIdx.x < THREADS) return add_up(shared);
  if (threadIdx.x < 2 * THREADS) return give_parts(call, shared);
  const uint32 warp = (threadIdx.x - 2 * THREADS) / warp_size;
  if (warp == 0) return copy_parts(call, plan, shared);
  if (warp == 1) return publish_parts(plan, shared);
  if (warp == 2) return gather_sets(call, plan, shared);
  if constexpr (STORER) store_parts(call, plan, shared);
}
