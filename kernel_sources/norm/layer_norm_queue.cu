// LayerNorm, a cluster of blocks for each row, which it takes from a queue: y = (x - mean) * rstd *
// weight + bias.
#include "kernel_sources/norm/row_queue.cuh"

using kiln::int64;
using kiln::uint64;

// Launched before `layer_norm_queue` where there is a queue.
extern "C" __global__ void layer_norm_queue_begin(uint64* queue) { *queue = 0; }

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS_PER_SM)
    layer_norm_queue(const DTYPE* x, const DTYPE* weight, const DTYPE* bias, DTYPE* y, int64 rows,
                     int64 x_stride, uint64* queue) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.weight = weight;
  call.bias = bias;
  call.y = y;
  kiln::norm::queue_rows<kiln::norm::LayerNorm>(call, rows, queue);
}
