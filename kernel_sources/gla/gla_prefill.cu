// Gated linear attention over tokens in their order. A block has 32 columns of a head's state in
// registers, a thread DIM_K / 8 rows of one column; tokens are staged in shared memory, STAGED at a
// time.
//
//   STAGED   tokens of a stage
#include "kernel_sources/gla/gate.cuh"

namespace kiln::gla {

inline constexpr int columns = 32, row_groups = 8, threads = columns * row_groups;
inline constexpr int held =
    (DIM_K + row_groups - 1) / row_groups;  // rows of a thread: r, r + 8, ...
inline constexpr int column_tiles = (DIM_V + columns - 1) / columns;

struct Stage {
  float q[STAGED][DIM_K], k[STAGED][DIM_K], gate[STAGED][DIM_K];
  float v[STAGED][columns];
};

}  // namespace kiln::gla

// Grid: batch * heads * column tiles. Lanes that differ in their low three bits share a column and
// add up its sum.
extern "C" __global__ void __launch_bounds__(256)
    gla_prefill(const DTYPE* q, const DTYPE* k, const DTYPE* v, const DTYPE* g,
                const float* initial_state, DTYPE* o, float* final_state, kiln::int64 seqlen,
                int heads) {
  using namespace kiln;
  using namespace kiln::gla;
  __shared__ Stage stage;
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread % row_groups, column = thread / row_groups;
  const int64 head = blockIdx.x / column_tiles;  // of all sequences
  const int first = static_cast<int>(blockIdx.x % column_tiles) * columns;
  const bool inside = first + column < DIM_V;
  const int64 batch = head / heads, at_head = head % heads;

  float state[held];
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const int row = i * row_groups + group;
    const bool there = HAS_STATE == 1 && inside && row < DIM_K;
    state[i] = there ? initial_state[(head * DIM_K + row) * DIM_V + first + column] : 0.0f;
  }
  for (int64 begin = 0; begin < seqlen; begin += STAGED) {
    const int count = seqlen - begin < STAGED ? static_cast<int>(seqlen - begin) : STAGED;
    // Token t of the stage is row (batch * seqlen + begin + t) * heads + at_head of q, k, g and v.
    const int64 row = (batch * seqlen + begin) * heads + at_head;
    __syncthreads();  // all are done with the stage before
#pragma unroll 1
    for (int e = thread; e < count * DIM_K; e += threads) {
      const int t = e / DIM_K, d = e % DIM_K;
      const int64 from = (row + static_cast<int64>(t) * heads) * DIM_K + d;
      stage.q[t][d] = to_float(q[from]) * static_cast<float>(SCALE);
      stage.k[t][d] = to_float(k[from]);
      stage.gate[t][d] = gate_of(to_float(g[from]));
    }
#pragma unroll 1
    for (int e = thread; e < count * columns; e += threads) {
      const int t = e / columns, c = first + e % columns;
      stage.v[t][e % columns] =
          c < DIM_V ? to_float(v[(row + static_cast<int64>(t) * heads) * DIM_V + c]) : 0.0f;
    }
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < count; ++t) {
      const float value = stage.v[t][column];
      float sum = 0;
#pragma unroll
      for (int i = 0; i < held; ++i) {
        const int d = i * row_groups + group;
        if (DIM_K % row_groups != 0 && d >= DIM_K) break;
        state[i] = stage.gate[t][d] * state[i] + stage.k[t][d] * value;
        sum += stage.q[t][d] * state[i];
      }
#pragma unroll
      for (int step = row_groups / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
      if (group == 0 && inside) {
        o[(row + static_cast<int64>(t) * heads) * DIM_V + first + column] = from_float<DTYPE>(sum);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const int row = i * row_groups + group;
    if (inside && row < DIM_K)
      final_state[(head * DIM_K + row) * DIM_V + first + column] = state[i];
  }
}
