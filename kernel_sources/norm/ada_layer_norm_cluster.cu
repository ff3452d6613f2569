// Adaptive LayerNorm, a cluster of blocks for each row: y = scale * norm(x) + shift.
#include "kernel_sources/norm/row_cluster.cuh"

static_assert(HAS_WEIGHT == 0 && HAS_BIAS == 0,
              "scale and shift take the place of weight and bias");

using kiln::int64;

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1)
    __launch_bounds__(kiln::norm::cluster_threads)
        ada_layer_norm_cluster(const DTYPE* x, const DTYPE* scale, const DTYPE* shift, DTYPE* y,
                               int64 rows, int64 x_stride, int64 scale_stride, int64 shift_stride) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.scale = scale;
  call.scale_stride = scale_stride;
  call.shift = shift;
  call.shift_stride = shift_stride;
  call.y = y;
  kiln::norm::cluster_rows<kiln::norm::AdaLayerNorm>(call, rows);
}
