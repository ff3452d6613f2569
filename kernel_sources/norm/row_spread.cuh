// All multiprocessors for each long row: a block has the same slice of every row, with its weight
// and bias in shared memory for good, and slices of rows pass through a ring of slots there, so
// that memory is read once. Blocks publish the moments of their slices and gather those of a row.
// The warps of a block have roles, and no role waits for another but through the barriers of the
// slots:
//
//   full     a slice has arrived       the warp that copies -> those that add up
//   added    its moments are known     those that add up -> those that publish and that gather
//   known    so are its row's          those that publish and that gather -> those that give
//   written  its slot has its result   those that give -> the one that stores
//   empty    its slot is free          the one that stores -> the one that copies
//
// No role is more than one round of the ring ahead of another, so the parity of a phase tells which
// it is: filling a slot anew needs `empty` and so every role's arrival before that. A warp that
// gathers looks at its own rows only, as it would not be waited for at those of the others; from
// one to the next it passes no slot twice (GATHERERS <= SLOTS), so that it misses no phase.
//
// A multiprocessor with more bandwidth than others has to wait for them at every row, and leaves it
// to them: dealt out like this, rows are not slower than taken from a queue (row_queue.cuh), where
// the ring is deep enough for the time from a row's last arrival to its result.
//
// No deadlock. All blocks run at once: the grid is at most one block a multiprocessor, and the
// launch is cooperative, so that a device of which something else holds a part runs all blocks or
// refuses them. All take the rows in one order. Of the first row that is not written yet, all
// slices are taken, as only rows before it can hold slots, and those are written; from there to its
// published moments nothing waits for another block.
//
// Moments have room for the last 2 SLOTS rows. A block that publishes row r has stored row r -
// SLOTS, so all have published that, so all have stored row r - 2 SLOTS: nobody still wants the
// moments in whose place those of r come. A place says which row it has.
//
//   PART       packs of a slice                 SLOTS      slices in the ring
//   UNROLL     packs that a thread has at once  GATHERERS  warps that gather, which share the rows
#pragma once

#include "kernel_sources/device/bulk.cuh"
#include "kernel_sources/norm/constants.cuh"
#include "kernel_sources/norm/published_moments.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert(VEC * sizeof(DTYPE) == 16, "copies move multiples of 16 bytes");
static_assert(PART >= 8 && PART % 8 == 0, "slices begin at multiples of 128 bytes");
static_assert(SLOTS >= 3 && SLOTS <= 32, "a slice at work, one that waits, the next on its way");
static_assert(UNROLL >= 1 && UNROLL <= 8, "packs that a thread has at once");
static_assert(GATHERERS >= 1 && GATHERERS <= SLOTS, "a warp that gathers misses no phase");
static_assert(2 * THREADS + (3 + GATHERERS) * 32 <= 1024,
              "two groups of threads and the other warps");

namespace kiln::norm {

using SlicePack = Pack<DTYPE, VEC>;

inline constexpr int row_packs = ROW_SIZE / VEC;
inline constexpr int slices = (row_packs + PART - 1) / PART;
inline constexpr int adding_warps = THREADS / warp_size;
inline constexpr int turns = (PART + THREADS * UNROLL - 1) / (THREADS * UNROLL);
inline constexpr int warp_packs = turns * UNROLL * warp_size;  // of a slice, neighbours
inline constexpr int spread_threads = 2 * THREADS + (3 + GATHERERS) * warp_size;

struct SpreadShared {
  Moments warps[SLOTS][adding_warps];
  Normaliser results[SLOTS];
  Barrier full[SLOTS], added[SLOTS], known[SLOTS], written[SLOTS], empty[SLOTS];
};
static_assert(sizeof(SpreadShared) <= SLOTS * (adding_warps * 16 + 56),
              "what the host reckons with");

// Dynamic shared memory: the ring, then weight and bias.
__device__ __forceinline__ SlicePack* slot_at(int slot) {
  extern __shared__ __align__(128) uint4 lines_of_smem[];
  return reinterpret_cast<SlicePack*>(lines_of_smem) + slot * PART;
}

// What a block does for all rows, by roles.
template <class F>
struct SpreadBlock {
  using Fs = Factors<F, DTYPE, VEC, HAS_WEIGHT, HAS_BIAS>;
  const Operands<DTYPE>& call;
  SpreadShared& shared;
  Moments* moments;   // [2 SLOTS, slices], zeros
  int64 rows, begin;  // of the slice, in packs
  int packs;
  bool holds;  // Hint::hold is meant: slices begin with lines, as rows do

  // Calls `f` with every `step`-th row from `first` on and its slot, in order, once `before` has
  // passed the slot's phase.
  template <typename Fn>
  __device__ __forceinline__ void each_row(const Barrier* before, Fn f, uint32 parity = 0,
                                           int first = 0, int step = 1) const {
    RingPlace<SLOTS> at;
    at.parity = parity;
    for (int i = 0; i < first; ++i) at.next();
#pragma unroll 1
    for (int64 row = first; row < rows; row += step) {
      before[at.slot].wait(at.parity);
      f(row, at.slot);
      for (int i = 0; i < step; ++i) at.next();
    }
  }
  __device__ __forceinline__ void tell(Barrier& barrier) const {
    __syncwarp();
    if (lane_of() == 0) barrier.arrive();
  }

  __device__ __forceinline__ const DTYPE* slice_of(int64 row) const {
    return call.x + row * call.x_stride + begin * VEC;
  }

  __device__ __forceinline__ void copy() const {
    if (lane_of() != 0) return;
    const uint32 bytes = static_cast<uint32>(packs) * 16;
    each_row(
        shared.empty,
        [&](int64 row, int slot) {
          shared.full[slot].arrive_expecting(bytes);
          bulk_copy<Hint(LOAD_HINT)>(slot_at(slot), slice_of(row), bytes, shared.full[slot], holds);
        },
        1);  // the phase before the first counts as over
  }

  __device__ __forceinline__ void add_up(int warp) const {
    const int left = packs - warp * warp_packs;
    each_row(shared.full, [&](int64, int slot) {
      warp_moments<F::centred, UNROLL>(slot_at(slot) + warp * warp_packs + lane_of(),
                                       left < warp_packs ? left : warp_packs,
                                       shared.warps[slot][warp]);
      tell(shared.added[slot]);
    });
  }

  __device__ __forceinline__ Moments* moments_of(int64 row) const {
    return moments + row % (2 * SLOTS) * slices;
  }
  __device__ __forceinline__ static uint32 mark(int64 row) { return static_cast<uint32>(row) + 1; }

  __device__ __forceinline__ void publish() const {
    each_row(shared.added, [&](int64 row, int slot) {
      Moments own = merge<F::centred, adding_warps>(shared.warps[slot]);
      if (lane_of() == 0) give_moments(moments_of(row) + blockIdx.x, own, mark(row));
      tell(shared.known[slot]);
    });
  }

  __device__ __forceinline__ void gather(int turn) const {
    const auto one_row = [&](int64 row, int slot) {
      const Moments m =
          gather_moments(moments_of(row), slices, ROW_SIZE, [&](int slice, Moments& part) {
            const bool there = __float_as_uint(part.count) == mark(row);
            const int held = row_packs - slice * PART < PART ? row_packs - slice * PART : PART;
            if (there) part.count = static_cast<float>(held * VEC);
            return there;
          });
      if (lane_of() == 0) shared.results[slot] = normaliser<F::centred>(m, ROW_SIZE, EPS);
      tell(shared.known[slot]);
    };
    each_row(shared.added, one_row, 0, turn, GATHERERS);
  }

  // Each thread keeps the factors of the packs that it gives: nobody else reads them.
  __device__ __forceinline__ void give(int thread) const {
    const int first = thread / warp_size * warp_packs + lane_of();
    SlicePack* const factors = slot_at(SLOTS) + first;
    const auto kept = [&](int place, int i) { return factors + place * PART + i * warp_size; };
    const auto inside = [&](int i) { return first + i * warp_size < packs; };
#pragma unroll 1
    for (int i = 0; i < turns * UNROLL && inside(i); ++i) {
      Fs::each(call, begin + first + i * warp_size,
               [&](const DTYPE* p, int place) { *kept(place, i) = kiln::load<Fs::hint, VEC>(p); });
    }
    each_row(shared.known, [&](int64, int slot) {
      const Normaliser n = shared.results[slot];
      SlicePack* const mine = slot_at(slot) + first;
#pragma unroll 1
      for (int i = 0; i < turns * UNROLL; i += UNROLL) {
        SlicePack x[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
          if (inside(i + k)) x[k] = mine[(i + k) * warp_size];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
          if (!inside(i + k)) continue;
          Fs f;
          f.read([&](int place) { return kept(place, i + k); });
          mine[(i + k) * warp_size] = f.apply(n, x[k]);
        }
      }
      fence_copies();
      tell(shared.written[slot]);
    });
  }

  // It also lets go of what was held: it has the time.
  __device__ __forceinline__ void store() const {
    each_row(shared.written, [&](int64 row, int slot) {
      __syncwarp();  // nobody still waits for the phase that has passed
      if (lane_of() == 0) {
        bulk_store(call.y + row * ROW_SIZE + begin * VEC, slot_at(slot),
                   static_cast<uint32>(packs) * 16);
        wait_for_copies();
        shared.empty[slot].arrive();
      }
      if (Hint(LOAD_HINT) != Hint::hold || !holds) return;
      if (!must_let_go(row, rows, ROW_SIZE * int64{sizeof(DTYPE)})) return;
      for (int i = lane_of() * 8; i < packs; i += 8 * warp_size) let_go(slice_of(row) + i * VEC);
    });
  }
};

// Grid: `slices` blocks of `spread_threads`, all at once.
template <class F>
__device__ __forceinline__ void spread_rows(const Operands<DTYPE>& call, int64 rows,
                                            Moments* moments) {
  __shared__ SpreadShared shared;
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 0; i < SLOTS; ++i) {
      shared.full[i].init(1);
      shared.added[i].init(adding_warps);
      shared.known[i].init(2);
      shared.written[i].init(adding_warps);
      shared.empty[i].init(1);
    }
    fence_barriers();
  }
  __syncthreads();
  const int begin = static_cast<int>(blockIdx.x) * PART;
  const SpreadBlock<F> block{call,
                             shared,
                             moments,
                             rows,
                             begin,
                             row_packs - begin < PART ? row_packs - begin : PART,
                             begin_with_lines<F>(call)};
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < THREADS) return block.add_up(thread / warp_size);
  if (thread < 2 * THREADS) return block.give(thread - THREADS);
  const int warp = (thread - 2 * THREADS) / warp_size;
  if (warp == 0) return block.copy();
  if (warp == 1) return block.publish();
  if (warp == 2) return block.store();
  block.gather(warp - 3);
}

}  // namespace kiln::norm
