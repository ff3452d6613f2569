// LayerNorm of x + residual, a cluster of blocks for each row: both y and the rounded sum are
// written.
#include "kernel_sources/norm/row_cluster.cuh"

using kiln::int64;

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1)
    __launch_bounds__(kiln::norm::cluster_threads)
        fused_add_layer_norm_cluster(const DTYPE* x, const DTYPE* residual, const DTYPE* weight,
                                     const DTYPE* bias, DTYPE* y, DTYPE* residual_out, int64 rows,
                                     int64 x_stride, int64 residual_stride) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.residual = residual;
  call.residual_stride = residual_stride;
  call.weight = weight;
  call.bias = bias;
  call.y = y;
  call.residual_out = residual_out;
  kiln::norm::cluster_rows<kiln::norm::FusedAddLayerNorm>(call, rows);
}
