// Gated linear attention of one token: one pass over the state, which is read, decayed, added to
// and written at once. A block has 32 columns of a head's state; each of its warps every WARPS-th
// row of them, a lane a column.
//
//   WARPS   of a block
#include "kernel_sources/gla/gate.cuh"

static_assert(WARPS >= 1 && WARPS <= 32, "a block has up to 32 warps");

// Grid: batch * heads * column tiles.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    gla_decode(const DTYPE* q, const DTYPE* k, const DTYPE* v, const DTYPE* g,
               const float* initial_state, DTYPE* o, float* final_state) {
  using namespace kiln;
  using namespace kiln::gla;
  constexpr int column_tiles = (DIM_V + 31) / 32;
  __shared__ float partial[WARPS][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64 head = blockIdx.x / column_tiles;
  const int column = static_cast<int>(blockIdx.x % column_tiles) * 32 + lane;
  const bool inside = column < DIM_V;
  const float value = inside ? to_float(v[head * DIM_V + column]) : 0.0f;
  float sum = 0;
#pragma unroll 4
  for (int d = warp; d < DIM_K; d += WARPS) {
    const int64 row = head * DIM_K + d;
    const float before = HAS_STATE == 1 && inside ? initial_state[row * DIM_V + column] : 0.0f;
    const float after = gate_of(to_float(g[row])) * before + to_float(k[row]) * value;
    sum += to_float(q[row]) * static_cast<float>(SCALE) * after;
    if (inside) final_state[row * DIM_V + column] = after;
  }
  partial[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || !inside) return;
#pragma unroll
  for (int w = 1; w < WARPS; ++w) sum += partial[w][lane];
  o[head * DIM_V + column] = from_float<DTYPE>(sum);
}
