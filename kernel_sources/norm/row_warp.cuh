// LANES neighbouring threads of a warp for each row, THREADS / LANES rows in a block. For short
// rows.
#pragma once

#include "kernel_sources/norm/constants.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert(LANES >= 1 && LANES <= 32 && (LANES & (LANES - 1)) == 0,
              "a team is a power of two of lanes");
static_assert(EARLY <= 1, "a lane's factors stay in registers");
static_assert((ROW_SIZE / VEC + LANES - 1) / LANES <= 32,
              "a lane holds at most 32 accesses of its row");

namespace kiln::norm {

// Grid: ceil(rows / (THREADS / LANES)) blocks.
template <class F>
__device__ __forceinline__ void warp_rows(const Operands<DTYPE>& call, int64 rows) {
  constexpr int packs = ROW_SIZE / VEC;
  constexpr int items = (packs + LANES - 1) / LANES;
  constexpr int whole = packs / LANES;
  Held<F, DTYPE, VEC, items, whole, LANES, HAS_WEIGHT, HAS_BIAS> held;
  held.base = 0;
  held.first = static_cast<int>(threadIdx.x) % LANES;
  held.end = packs;
  // Teams past the last row compute it again and write nothing: every lane must take part in the
  // shuffles.
  const int64 wanted = static_cast<int64>(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
  const bool write = wanted < rows;
  const Operands<DTYPE> row = call.at(write ? wanted : rows - 1, ROW_SIZE);

  held.template fetch<Hint(LOAD_HINT)>(row);
  FactorStore<decltype(held), THREADS, Early(EARLY)> factors;
  factors.before_rows(held, row);
  factors.before_statistics(held, row);
  held.template settle<Hint(STORE_HINT)>(row, write);
  const Moments m = held.template moments<LANES>(static_cast<float>(ROW_SIZE));
  const Normaliser n = normaliser<F::centred>(m, ROW_SIZE, EPS);
  if (write)
    held.template write<Hint(STORE_HINT)>(row, n, [&](int i) { return factors.get(held, row, i); });
}

}  // namespace kiln::norm
