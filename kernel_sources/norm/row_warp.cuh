// Teams of LANES neighbouring threads of a warp, each with ROWS rows at once. For short rows.
#pragma once

#include "kernel_sources/norm/constants.cuh"
#include "kernel_sources/norm/row.cuh"

static_assert(LANES >= 1 && LANES <= 32 && (LANES & (LANES - 1)) == 0,
              "a team is a power of two of lanes");
static_assert(EARLY <= 1, "a lane's factors stay in registers");
static_assert(ROWS >= 1 && ROWS * ((ROW_SIZE / VEC + LANES - 1) / LANES) <= 32,
              "a lane holds at most 32 accesses of its rows");

namespace kiln::norm {

// Grid: ceil(rows / (THREADS / LANES * ROWS)) blocks. A team's rows lie THREADS / LANES apart, so
// that what a block asks for at once is one piece of memory.
template <class F>
__device__ __forceinline__ void warp_rows(const Operands<DTYPE>& call, int64 rows) {
  constexpr int packs = ROW_SIZE / VEC;
  constexpr int items = (packs + LANES - 1) / LANES;
  constexpr int whole = packs / LANES;
  constexpr int teams = THREADS / LANES;
  using OfRow = Held<F, DTYPE, VEC, items, whole, LANES, HAS_WEIGHT, HAS_BIAS>;
  // What scales and shifts the results is the same for all rows, but where it has x's size.
  constexpr int sets_of_factors = F::modulated ? ROWS : 1;
  OfRow held[ROWS];
  Operands<DTYPE> row[ROWS];
  bool write[ROWS];
  FactorStore<OfRow, THREADS, Early(EARLY)> factors[sets_of_factors];
  Normaliser n[ROWS];
  const int64 first = static_cast<int64>(blockIdx.x) * (teams * ROWS) + threadIdx.x / LANES;
  // Past the last row teams compute one again and write nothing: every lane must take part in the
  // shuffles.
  const Operands<DTYPE> base = call.at(first < rows ? first : 0, ROW_SIZE);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    write[r] = first + r * teams < rows;
    row[r] = base.at(write[r] ? r * teams : 0, ROW_SIZE);
    held[r].base = 0;
    held[r].first = static_cast<int>(threadIdx.x % LANES);
    held[r].end = packs;
    held[r].template fetch<Hint(LOAD_HINT)>(row[r]);
  }
  factors[0].before_rows(held[0], call);
#pragma unroll
  for (int r = 0; r < sets_of_factors; ++r) factors[r].of_row(held[r], row[r]);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    held[r].template settle<Hint(STORE_HINT)>(row[r], write[r]);
    const Moments m = held[r].template moments<LANES>(static_cast<float>(ROW_SIZE));
    n[r] = normaliser<F::centred>(m, ROW_SIZE, EPS);
  }
  constexpr int64 bytes = int64{ROW_SIZE} * sizeof(DTYPE) * (teams * ROWS);
  const bool lets_go = must_let_go<int>(blockIdx.x, gridDim.x, bytes);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const auto of_pack = [&](int i) {
      return factors[F::modulated ? r : 0].get(held[r], row[r], i);
    };
    held[r].template write<Hint(STORE_HINT)>(row[r], n[r], of_pack, write[r]);
    // A row that begins within a line may end in one that no leader has a pack of.
    const bool ends = held[r].first == (packs - 1) % LANES;
    held[r].template let_go<Hint(LOAD_HINT)>(row[r], lets_go & (held[r].leads() | ends));
  }
}

}  // namespace kiln::norm
