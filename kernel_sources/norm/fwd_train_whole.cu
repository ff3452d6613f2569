// Batch norm, training, of few values a channel that lie C apart (no spatial extent): ROWS threads
// hold a channel.
//
//   HELD       values that a thread holds; HELD * ROWS is at least the batch
//   ROWS       threads of a channel; THREADS / ROWS neighbouring channels a block
#include "kernel_sources/norm/sets.cuh"

static_assert(HELD >= 1 && HELD <= 32, "values that a thread holds");
static_assert(ROWS >= 2 && THREADS % ROWS == 0, "a block has whole channels");
static_assert(VEC == 1 && PER_PIECE == 0, "a thread reads single values, of its own channel");

using namespace kiln;
using namespace kiln::norm;

// Grid: THREADS / ROWS channels a block.
extern "C" __global__ void __launch_bounds__(THREADS) fwd_train_whole(SetsCall call) {
  constexpr int channels = THREADS / ROWS;
  __shared__ Moments parts[THREADS];
  const int column = static_cast<int>(threadIdx.x) % channels;
  const int row = static_cast<int>(threadIdx.x) / channels;
  const int batch = static_cast<int>(call.pieces);
  const int64 wanted = static_cast<int64>(blockIdx.x) * channels + column;
  const int64 set = wanted < call.sets ? wanted : call.sets - 1;
  const bool write = wanted < call.sets;
  SetPack x[HELD];
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    const int at = row + i * ROWS;
    x[i] = load_if<Hint::stream, 1, true>(at < batch, call.x + set + at * call.stride);
  }
  const SetFactors factors(call, set);
  const Running was(call, set, row == 0);
  loads_before(batch > 0);
  const int held = (batch - row + ROWS - 1) / ROWS;  // of the values, at most HELD; 0 in late rows
  Moments m{0.f, 0.f, 0.f, static_cast<float>(held)};
#pragma unroll
  for (int i = 0; i < HELD; ++i) x[i].each([&](int, float v) { m.pivot += v; });
  m.pivot = held > 0 ? __fdividef(m.pivot, m.count) : 0.f;
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    if (i >= held) continue;
    x[i].each([&](int, float v) {
      const float d = v - m.pivot;
      m.sum += d;
      m.square = __fmaf_rn(d, d, m.square);
    });
  }
  parts[threadIdx.x] = m;
  __syncthreads();
  // All are read before the first is needed.
  Moments of_rows[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) of_rows[i] = parts[column + i * channels];
  m = of_rows[0];
#pragma unroll
  for (int i = 1; i < ROWS; ++i) {
    const Moments& next = of_rows[i];
    const float move = next.count > 0.f ? next.pivot - m.pivot : 0.f;
    const float sum = __fmaf_rn(next.count, move, next.sum);
    m.square += __fmaf_rn(move, next.sum + sum, next.square);
    m.sum += sum;
  }
  const SetStatistics s = statistics(call, m);
  if (!write) return;
  const float scale = s.rstd * factors.scale;
  const float shift = __fmaf_rn(-s.offset, scale, factors.shift);
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    if (i >= held) continue;
    float v[1];
    x[i].to(v);
    v[0] = __fmaf_rn(v[0] - s.pivot, scale, shift);
    kiln::store<Hint(STORE_HINT), 1>(call.y + set + (row + i * ROWS) * call.stride,
                                     SetPack::from(v));
  }
  if (row == 0) publish(call, set, s, was);
}
