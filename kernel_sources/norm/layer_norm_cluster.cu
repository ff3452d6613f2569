// LayerNorm, a cluster of blocks for each row: y = (x - mean) * rstd * weight + bias.
#include "kernel_sources/norm/row_cluster.cuh"

using kiln::int64;

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1)
    __launch_bounds__(kiln::norm::cluster_threads)
        layer_norm_cluster(const DTYPE* x, const DTYPE* weight, const DTYPE* bias, DTYPE* y,
                           int64 rows, int64 x_stride) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.weight = weight;
  call.bias = bias;
  call.y = y;
  kiln::norm::cluster_rows<kiln::norm::LayerNorm>(call, rows);
}
