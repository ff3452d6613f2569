// RMSNorm, a cluster of blocks for each row, which it takes from a queue: y = x * rstd * weight.
#include "kernel_sources/norm/row_queue.cuh"

static_assert(HAS_BIAS == 0, "RMSNorm has no bias");

using kiln::int64;
using kiln::uint64;

// Launched before `rms_norm_queue` where there is a queue.
extern "C" __global__ void rms_norm_queue_begin(uint64* queue) { *queue = 0; }

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS_PER_SM)
    rms_norm_queue(const DTYPE* x, const DTYPE* weight, DTYPE* y, int64 rows, int64 x_stride,
                   uint64* queue) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.weight = weight;
  call.y = y;
  kiln::norm::queue_rows<kiln::norm::RmsNorm>(call, rows, queue);
}
