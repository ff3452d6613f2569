// Few and large sets, each held on chip by a team of blocks between its statistics and its result:
// memory is read once. A set is cut into as many slices as the team has blocks. One warp of a block
// copies its slices, chunk by chunk, into a ring in shared memory and runs ahead as far as the ring
// allows; THREADS threads add up moments as chunks arrive; another warp gives the moments of the
// block's slice to the team, waits for those of the others and makes the set's statistics. Before a
// set is normalised and its chunks are free again, the next is added up, so nobody waits for the
// slowest block of a team at each set.
//
// Blocks of a team wait for each other, so all must run at once: the grid is at most one block a
// multiprocessor, each of which has room for one by its threads, registers (launch bounds) and
// shared memory (CHUNKS follows from the device's budget); and the launch is cooperative, so that
// a device of which something else holds a part runs all blocks or refuses them, and never starts
// some that wait for others. In a block, the ring holds two slices, or more: those of the set that
// is added up and of the one before.
//
// Each block gives its moments as one word of 16 bytes that is zero until then; what is read of it
// is whole, so nothing needs a fence. All blocks put together the same words in the same order.
//
//   CHUNKS     chunks of THREADS packs in the ring, of dynamic shared memory
#include "kernel_sources/device/bulk.cuh"
#include "kernel_sources/norm/sets.cuh"

static_assert(VEC * sizeof(DTYPE) == 16, "copies move multiples of 16 bytes");
static_assert(CHUNKS >= 3 && CHUNKS <= 64, "a slice at work, one that waits, the next on its way");
static_assert(THREADS >= CHUNKS, "a thread makes a slot's barriers");
static_assert(THREADS + 2 * kiln::warp_size <= 1024, "two warps more than those that compute");

using namespace kiln;
using namespace kiln::norm;

// The host's copy is HeldPlan in sets.h: both change together.
struct HeldPlan {
  Moments* moments;  // [sets, team], zeros
  int64 slice;       // packs of a block's part of a set
  uint32 team;       // blocks of a team; the grid is a multiple of it
  uint32 members;    // of a team, those whose slice is not empty
};

namespace {

constexpr int chunk_packs = THREADS;
constexpr int warps_at_work = THREADS / warp_size;
constexpr int turns = 2;         // sets between the first and the last stage of the pipeline
constexpr int most_members = 5;  // a lane's share of a team; the host sees to it

// How a set is normalised, with the factors that all its pieces share.
struct __align__(16) Result {
  SetStatistics statistics;
  float scale, shift;
};

struct Shared {
  Moments warps[turns][warps_at_work];
  Result results[turns];
  Barrier full[CHUNKS], empty[CHUNKS];
  Barrier added[turns], known[turns];
};
static_assert(sizeof(Shared) <= 2048, "what the host leaves of a block's shared memory");

// The sets of this block's team, and its slice of each.
struct Share {
  uint32 rank, teams;
  int64 first_set, begin;
  int packs, chunks;  // of the slice

  __device__ __forceinline__ Share(const SetsCall& call, const HeldPlan& plan) {
    rank = blockIdx.x % plan.team;
    teams = gridDim.x / plan.team;
    first_set = blockIdx.x / plan.team;
    begin = rank * plan.slice;
    const int64 left = call.pieces * call.piece - begin;
    packs = left < 0 ? 0 : static_cast<int>(left < plan.slice ? left : plan.slice);
    chunks = (packs + chunk_packs - 1) / chunk_packs;
  }
  __device__ __forceinline__ int chunk_end(int chunk) const {
    const int left = packs - chunk * chunk_packs;
    return left < chunk_packs ? left : chunk_packs;
  }
};

__device__ __forceinline__ SetPack* chunk_at(int slot) {
  extern __shared__ uint4 dynamic_smem[];
  return reinterpret_cast<SetPack*>(dynamic_smem) + slot * chunk_packs;
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

// The moments of a whole set, once all members have given theirs. First the mean, then the squares
// around it, so that nothing depends on how far the members' means lie apart.
__device__ __forceinline__ Moments team_moments(const Moments* team, int members) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  Moments part[most_members];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int i = 0; i < most_members; ++i) {
      part[i] = {0.f, 0.f, 0.f, 0.f};
      const int member = lane + i * warp_size;
      if (member < members) part[i] = look_at_moments(team + member);
    }
#pragma unroll
    for (int i = 0; i < most_members; ++i)
      missing |= lane + i * warp_size < members && part[i].count == 0.f;
  } while (__any_sync(all_lanes, missing));
  // Those that are not there are zeros, which add nothing.
  const float first = __shfl_sync(all_lanes, part[0].pivot, 0);
  float sum = 0.f, total = 0.f;
#pragma unroll
  for (int i = 0; i < most_members; ++i) {
    sum += __fmaf_rn(part[i].count, part[i].pivot - first, part[i].sum);
    total += part[i].count;
  }
  total = lanes_sum<warp_size>(total);
  const float pivot = first + lanes_sum<warp_size>(sum) / total;
  float rest = 0.f, square = 0.f;
#pragma unroll
  for (int i = 0; i < most_members; ++i) {
    const float move = part[i].pivot - pivot;
    const float moved = __fmaf_rn(part[i].count, move, part[i].sum);
    rest += moved;
    square += __fmaf_rn(move, part[i].sum + moved, part[i].square);
  }
  return {pivot, lanes_sum<warp_size>(rest), lanes_sum<warp_size>(square), total};
}

// The warp that copies.
__device__ __forceinline__ void copy_slices(const SetsCall& call, const Share& share,
                                            Shared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const uint64 policy = evict_first_policy();
  RingPlace<CHUNKS> at;
  at.parity = 1;  // the phase before the first counts as over
#pragma unroll 1
  for (int64 set = share.first_set; set < call.sets; set += share.teams) {
    const DTYPE* const x = call.x + set * call.set_stride * VEC;
#pragma unroll 1
    for (int chunk = 0; chunk < share.chunks; ++chunk, at.next()) {
      const int64 begin = share.begin + static_cast<int64>(chunk) * chunk_packs;
      const int length = share.chunk_end(chunk);
      SetPack* const to = chunk_at(at.slot);
      shared.empty[at.slot].wait(at.parity);
      if (lane == 0) shared.full[at.slot].arrive_expecting(static_cast<uint32>(length) * 16);
      __syncwarp();
      if constexpr (CONTIGUOUS) {
        if (lane == 0)
          bulk_copy(to, x + begin * VEC, static_cast<uint32>(length) * 16, shared.full[at.slot],
                    policy);
      } else {
        const int64 end = begin + length;
#pragma unroll 1
        for (int64 piece = divide(begin, call.piece) + lane; piece * call.piece < end;
             piece += warp_size) {
          const int64 start = piece * call.piece;
          const int64 from = start < begin ? begin : start;
          const int64 until = start + call.piece < end ? start + call.piece : end;
          bulk_copy(to + (from - begin), x + (piece * call.stride + from - start) * VEC,
                    static_cast<uint32>(until - from) * 16, shared.full[at.slot], policy);
        }
      }
    }
  }
}

// The warp that makes statistics.
__device__ __forceinline__ void make_statistics(const SetsCall& call, const HeldPlan& plan,
                                                const Share& share, Shared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  RingPlace<turns> turn;
#pragma unroll 1
  for (int64 set = share.first_set; set < call.sets; set += share.teams, turn.next()) {
    Moments* const team = plan.moments + set * plan.team;
    shared.added[turn.slot].wait(turn.parity);
    const Moments own = merge<true, warps_at_work>(shared.warps[turn.slot]);
    if (lane == 0 && share.packs > 0) give_moments(team + share.rank, own);
    const Running was(call, set, share.rank == 0 && lane == 0);
    float scale = 1.f, shift = 0.f;
    if constexpr (!PER_PIECE) {
      const SetFactors factors(call, set);
      scale = factors.scale;
      shift = factors.shift;
    }
    const SetStatistics s = statistics(call, team_moments(team, static_cast<int>(plan.members)));
    if (lane == 0) {
      shared.results[turn.slot] = {s, scale, shift};
      if (share.rank == 0) publish(call, set, s, was);
    }
    __syncwarp();
    if (lane == 0) shared.known[turn.slot].arrive();
  }
}

// Adds up a slice as its chunks arrive.
__device__ __forceinline__ void add_up(const Share& share, float count, Shared& shared,
                                       RingPlace<CHUNKS>& at, const RingPlace<turns>& turn) {
  Moments own{0.f, 0.f, 0.f, count};
#pragma unroll 1
  for (int chunk = 0; chunk < share.chunks; ++chunk, at.next()) {
    Tile<1> tile(share.chunk_end(chunk));
    shared.full[at.slot].wait(at.parity);
    tile.take(chunk_at(at.slot));
    if (chunk == 0) own.pivot = tile.warp_pivot();
    tile.accumulate(own.pivot, own.sum, own.square);
  }
  own.sum = lanes_sum<warp_size>(own.sum);
  own.square = lanes_sum<warp_size>(own.square);
  if (threadIdx.x % warp_size == 0) {
    shared.warps[turn.slot][threadIdx.x / warp_size] = own;
    shared.added[turn.slot].arrive();
  }
}

// Normalises a slice and frees its chunks.
__device__ __forceinline__ void normalise(const SetsCall& call, const Share& share, int64 set,
                                          const Walk<int>& from, Shared& shared,
                                          RingPlace<CHUNKS>& at, const RingPlace<turns>& turn) {
  shared.known[turn.slot].wait(turn.parity);
  const Result result = shared.results[turn.slot];
  SetFactors factors(result.scale, result.shift);
  if constexpr (PER_PIECE) factors = SetFactors(call, set);
  DTYPE* const y = call.y + set * call.set_stride * VEC;
  Walk<int> walk = from;
#pragma unroll 1
  for (int chunk = 0; chunk < share.chunks; ++chunk, at.next()) {
    Tile<1> tile(share.chunk_end(chunk));
    tile.take(chunk_at(at.slot));
    __syncwarp();
    if (threadIdx.x % warp_size == 0) shared.empty[at.slot].arrive();
    give(tile, y, walk, result.statistics, factors);
    walk.move();
  }
}

}  // namespace

// Launched before `sets_held`: `count` moments to zero.
extern "C" __global__ void __launch_bounds__(256) sets_held_begin(uint4* moments, int64 count) {
  const int64 i = static_cast<int64>(blockIdx.x) * 256 + threadIdx.x;
  if (i < count) moments[i] = make_uint4(0, 0, 0, 0);
}

// Grid: a multiple of plan.team blocks, all at once; THREADS and two warps.
extern "C" __global__ void __launch_bounds__(THREADS + 64, 1)
    sets_held(SetsCall call, HeldPlan plan) {
  __shared__ Shared shared;
  const int i = static_cast<int>(threadIdx.x);
  if (i < CHUNKS) {
    shared.full[i].init(1);
    shared.empty[i].init(warps_at_work);
  }
  if (i < turns) {
    shared.added[i].init(warps_at_work);
    shared.known[i].init(1);
  }
  if (i < CHUNKS) fence_barriers();
  __syncthreads();
  const Share share(call, plan);
  if (threadIdx.x >= THREADS + warp_size) return copy_slices(call, share, shared);
  if (threadIdx.x >= THREADS) return make_statistics(call, plan, share, shared);

  const Walk<int> walk(call, share.begin + threadIdx.x);
  float count = 0.f;  // elements of the slice that this warp holds
#pragma unroll 1
  for (int chunk = 0; chunk < share.chunks; ++chunk)
    count += Tile<1>(share.chunk_end(chunk)).warp_count();
  RingPlace<CHUNKS> adding, giving;
  RingPlace<turns> added, given;
  const int64 behind = share.teams;
#pragma unroll 1
  for (int64 set = share.first_set; set < call.sets + behind; set += share.teams) {
    if (set < call.sets) {
      add_up(share, count, shared, adding, added);
      added.next();
    }
    if (set - behind >= share.first_set) {
      normalise(call, share, set - behind, walk, shared, giving, given);
      given.next();
    }
  }
}
