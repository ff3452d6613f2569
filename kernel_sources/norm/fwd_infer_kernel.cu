// Batch and instance norm by running statistics: y = (x - mean) / sqrt(var + eps) * weight + bias,
// a map over all elements.
//
//   DTYPE, FACTOR  element types of x and y, and of weight and bias
//   VEC            elements of an access              THREADS, UNROLL  threads of a block, accesses
//   of a thread ROUND_STATISTICS  1: running statistics are rounded to DTYPE first (instance norm)
//   STORE_HINT     kiln::Hint of what is written
#include "kernel_sources/device/dtype.cuh"
#include "kernel_sources/device/memory.cuh"

static_assert(VEC >= 1 && VEC * sizeof(DTYPE) <= 16 && (VEC & (VEC - 1)) == 0,
              "an access moves up to 16 bytes");
static_assert(THREADS >= 32 && THREADS <= 1024 && THREADS % 32 == 0,
              "a block has 1 to 32 whole warps");
static_assert(UNROLL >= 1 && UNROLL <= 16, "accesses of a thread");
static_assert(ROUND_STATISTICS == 0 || ROUND_STATISTICS == 1, "ROUND_STATISTICS is a choice");
static_assert(STORE_HINT >= 0 && STORE_HINT <= 2, "kiln::Hint has three values");

using namespace kiln;

// The host's copy is InferCall in infer_map.h: both change together. weight and bias may be null.
struct InferCall {
  const DTYPE* x;
  DTYPE* y;
  const float* mean;
  const float* variance;
  const FACTOR* weight;
  const FACTOR* bias;
  int64 packs;  // of the tensor
  int64 piece;  // packs of one channel of one batch item
  int64 channels;
  float eps;
};

namespace {

__device__ __forceinline__ int64 divide(int64 a, int64 b) {
  return (a | b) >> 32 == 0 ? static_cast<int64>(static_cast<uint32>(a) / static_cast<uint32>(b))
                            : a / b;
}

__device__ __forceinline__ float statistic(const float* values, int64 channel) {
  const float v = values[channel];
  return ROUND_STATISTICS ? to_float(from_float<DTYPE>(v)) : v;
}

}  // namespace

// Grid: THREADS * UNROLL packs a block.
extern "C" __global__ void __launch_bounds__(THREADS) fwd_infer_kernel(InferCall call) {
  const int64 first = static_cast<int64>(blockIdx.x) * (THREADS * UNROLL) + threadIdx.x;
  Pack<DTYPE, VEC> x[UNROLL];
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    const int64 at = first + i * THREADS;
    if (at < call.packs) x[i] = kiln::load<Hint::stream, VEC>(call.x + at * VEC);
  }
  // Where the first pack stands, and how far a step of THREADS packs goes.
  const int64 row = divide(first, call.piece);
  int64 offset = first - row * call.piece;
  int64 channel = row - divide(row, call.channels) * call.channels;
  const int64 step_rows = THREADS < call.piece ? 0 : divide(THREADS, call.piece);
  const int64 step_offset = THREADS - step_rows * call.piece;
  const int64 step_channel = step_rows < call.channels ? step_rows : step_rows % call.channels;
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    const int64 at = first + i * THREADS;
    if (at < call.packs) {
      const float mean = statistic(call.mean, channel);
      const float rstd = rsqrtf(statistic(call.variance, channel) + call.eps);
      const float scale = call.weight == nullptr ? rstd : rstd * to_float(call.weight[channel]);
      const float shift = call.bias == nullptr ? 0.f : to_float(call.bias[channel]);
      const auto y = x[i].map([&](float v) { return __fmaf_rn(v - mean, scale, shift); });
      kiln::store<Hint(STORE_HINT), VEC>(call.y + at * VEC, y);
    }
    offset += step_offset;
    channel += step_channel;
    if (offset >= call.piece) {
      offset -= call.piece;
      ++channel;
    }
    if (channel >= call.channels) channel -= call.channels;
  }
}
