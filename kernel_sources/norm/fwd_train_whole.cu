// Batch norm, training, of few values a channel that lie C apart (no spatial extent): a thread
// holds a channel.
//
//   HELD       values that a thread holds, at least the batch
#include "kernel_sources/norm/sets.cuh"

static_assert(HELD >= 1 && HELD <= 32, "values that a thread holds");
static_assert(VEC == 1 && PER_PIECE == 0, "a thread reads single values, of its own channel");

using namespace kiln;
using namespace kiln::norm;

// Grid: THREADS channels a block.
extern "C" __global__ void __launch_bounds__(THREADS) fwd_train_whole(SetsCall call) {
  const int64 set = static_cast<int64>(blockIdx.x) * THREADS + threadIdx.x;
  if (set >= call.sets) return;
  const int batch = static_cast<int>(call.pieces);
  SetPack x[HELD];
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    x[i] = SetPack::zero();
    if (i < batch) x[i] = kiln::load<Hint::stream, 1>(call.x + set + i * call.stride);
  }
  const SetFactors factors(call, set);
  Moments m{0.f, 0.f, 0.f, static_cast<float>(batch)};
  Chains plain;
#pragma unroll
  for (int i = 0; i < HELD; ++i) x[i].each([&](int, float v) { plain.part[i % 4] += v; });
  m.pivot = plain.total() * call.inverse_count;
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    if (i >= batch) continue;
    x[i].each([&](int, float v) {
      const float d = v - m.pivot;
      m.sum += d;
      m.square = __fmaf_rn(d, d, m.square);
    });
  }
  const SetStatistics s = statistics(call, m);
  publish(call, set, s);
  const float scale = s.rstd * factors.scale;
  const float shift = __fmaf_rn(-s.offset, scale, factors.shift);
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    if (i >= batch) continue;
    float v[1];
    x[i].to(v);
    v[0] = __fmaf_rn(v[0] - s.pivot, scale, shift);
    kiln::store<Hint(STORE_HINT), 1>(call.y + set + i * call.stride, SetPack::from(v));
  }
}
