// A block for each row, which its threads hold in registers between the statistics and the result:
// one read, one barrier, one write.
//
//   LOOP       0: a block takes one row; 1: several; 2: several, and the next is loaded before the
//   present one is reduced
#pragma once

#include "kernel_sources/norm/constants.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert((ROW_SIZE / VEC + THREADS - 1) / THREADS <= 32,
              "a thread holds at most 32 accesses of its row");
static_assert(LOOP >= 0 && LOOP <= 2, "LOOP has three values");

namespace kiln::norm {

// Whether Hint::hold is worth it, for calls from about 4 MiB of x on: less stays in the L2 as it
// is, and letting go takes 0.1 us of a row alone. The grid tells, as it is known before all
// arguments.
__device__ __forceinline__ bool worth_holding() {
  return gridDim.x >= static_cast<uint32>((4 << 20) / (ROW_SIZE * sizeof(DTYPE)));
}

// Grid: at most one block a row; a block takes every gridDim.x-th row.
template <class F>
__device__ __forceinline__ void block_rows(const Operands<DTYPE>& call, int64 rows) {
  constexpr int packs = ROW_SIZE / VEC;
  constexpr int items = (packs + THREADS - 1) / THREADS;
  constexpr int whole = packs / THREADS;
  // A mean takes a division, and many rows 3 % longer; 16-bit results do not show the difference.
  constexpr bool to_mean = sizeof(DTYPE) == 4;
  using Row = Held<F, DTYPE, VEC, items, whole, THREADS, HAS_WEIGHT, HAS_BIAS>;
  __shared__ Moments warps[2][THREADS / warp_size];  // by turns: one barrier a row is enough
  Row held;
  held.base = 0;
  held.first = static_cast<int>(threadIdx.x);
  held.end = packs;
  const bool holds = worth_holding() & begin_with_lines<F>(call);
  const bool lets_go = holds & held.leads() &
                       must_let_go<int>(blockIdx.x, gridDim.x, ROW_SIZE * int64{sizeof(DTYPE)});
  int64 at = blockIdx.x;
  // One row: x is asked for first, then what scales and shifts it, and nothing later.
  constexpr bool pinned = LOOP == 0 && EARLY == 2;
  held.template fetch<Hint(LOAD_HINT), pinned>(call.at(at, ROW_SIZE), holds);
  FactorStore<Row, THREADS, Early(EARLY)> factors;
  factors.before_rows(held, call);

  bool first = true;
  for (int turn = 0;; turn ^= 1) {
    const Operands<DTYPE> row = call.at(at, ROW_SIZE);
    at += gridDim.x;
    Row next = held;
    if (LOOP == 2 && at < rows) next.template fetch<Hint(LOAD_HINT)>(call.at(at, ROW_SIZE), holds);
    if constexpr (pinned) {
      factors.of_row(held, row);
      loads_before(rows > 0);
    }
    held.template settle<Hint(STORE_HINT)>(row, true);
    const Moments own = held.template moments<warp_size>(held.warp_count());
    // Once x has come: asked for with x, scale and shift hold up that of other blocks.
    if constexpr (!pinned) factors.of_row(held, row);
    if (threadIdx.x % warp_size == 0) warps[turn][threadIdx.x / warp_size] = own;
    // Two rows leave no registers for its addresses later; one row is faster with it later.
    if constexpr (LOOP == 2) held.template let_go<Hint(LOAD_HINT)>(row, lets_go);
    __syncthreads();
    const Moments m = merge<F::centred, THREADS / warp_size, to_mean>(warps[turn]);
    const Normaliser n = normaliser<F::centred>(m, ROW_SIZE, EPS);
    // Of the threads that let go: a branch of the whole block would keep loads of factors behind
    // it.
    if (LOOP != 2 && lets_go) held.template let_go<Hint(LOAD_HINT)>(row, true);
    // A branch, which also keeps the compiler from putting off the loads of the next row.
    if (F::modulated || first) factors.before_results();
    first = false;
    held.template write<Hint(STORE_HINT)>(row, n, [&](int i) { return factors.get(held, row, i); });
    if (LOOP == 0 || at >= rows) return;
    if constexpr (LOOP == 2) {
      held = next;
    } else {
      held.template fetch<Hint(LOAD_HINT)>(call.at(at, ROW_SIZE), holds);
    }
  }
}

}  // namespace kiln::norm
