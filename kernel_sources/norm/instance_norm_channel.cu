// Instance norm of few and short instances a channel, with running statistics: a warp holds an
// instance and a block all those of a channel, so that it can move these itself. One read, one
// write.
//
//   PACKS      of an instance
//   ITEMS      packs that a lane holds
//   INSTANCES  warps of a channel: a power of two, no less than the batch
//   SETS       warps of a block
#include "kernel_sources/norm/sets.cuh"

static_assert(THREADS == 32, "a warp holds an instance");
static_assert(ITEMS >= 1 && ITEMS <= 16 && PACKS <= ITEMS * 32, "packs that a lane holds");
static_assert(SETS >= 1 && SETS <= 32 && SETS % INSTANCES == 0, "a block has whole channels");

using namespace kiln;
using namespace kiln::norm;

namespace {

// A barrier for each of the block's channels of several instances: 16 at most, as there are. What
// was written to shared memory before one arrives can be read by whoever has waited.
__device__ __forceinline__ void arrive(int channel) {
  asm volatile("barrier.cta.arrive %0, %1;" ::"r"(channel), "n"(32 * INSTANCES) : "memory");
}
__device__ __forceinline__ void wait(int channel) {
  asm volatile("barrier.cta.sync %0, %1;" ::"r"(channel), "n"(32 * INSTANCES) : "memory");
}

}  // namespace

// `call`: its sets are the instances, its groups the channels; `part`: 1 / batch. Grid: SETS /
// INSTANCES channels a block.
extern "C" __global__ void __launch_bounds__(32 * SETS)
    instance_norm_channel(SetsCall call, int batch, double part) {
  __shared__ float means[SETS], variances[SETS];
  const int warp = static_cast<int>(threadIdx.y);
  const int channels = static_cast<int>(call.groups);
  const int item = warp % INSTANCES;
  const int channel = static_cast<int>(blockIdx.x) * (SETS / INSTANCES) + warp / INSTANCES;
  const bool inside = item < batch && channel < channels;
  // Warps without an instance compute one again and write nothing.
  const int set = inside ? item * channels + channel : 0;
  const int64 start = start_of(call, set);
  const Walk<int> walk(call, threadIdx.x);
  Tile<ITEMS, PACKS / 32> tile(PACKS);
  tile.fetch_set(call, start, walk);
  const Moments m = tile.moments();
  const SetFactors factors(call, set);
  // One lane moves the channel's mean, one its variance.
  const bool moves = inside && item == 0 && threadIdx.x < 2;
  float* const running = threadIdx.x == 0 ? call.running_mean : call.running_var;
  const float was = value_if(moves, running + channel);
  const SetStatistics s = statistics(call, m);
  if (threadIdx.x == 0) {
    means[warp] = s.pivot + s.offset;
    variances[warp] = s.variance * call.unbias;
  }
  // Nobody waits but the warp that moves the channel's statistics, once it has written its results.
  const int of_channel = warp / INSTANCES;
  if (item != 0) arrive(of_channel);
  if (inside) give(tile, call.y + start, walk.again(), s, factors);
  if (item != 0) return;
  if constexpr (INSTANCES > 1) {
    wait(of_channel);
  } else {
    __syncwarp();
  }
  if (!moves) return;
  // In the order of the batch and in double, as instance_norm_track does.
  const float* const of_items = (threadIdx.x == 0 ? means : variances) + warp;
  double sum = 0;
#pragma unroll
  for (int b = 0; b < INSTANCES; ++b) sum += b < batch ? of_items[b] : 0.f;
  running[channel] = moved(call, static_cast<float>(sum * part), was);
}
