// RMSNorm, a cluster of blocks for each row: y = x * rstd * weight.
#include "kernel_sources/norm/row_cluster.cuh"

static_assert(HAS_BIAS == 0, "RMSNorm has no bias");

using kiln::int64;

extern "C" __global__ void __cluster_dims__(CLUSTER, 1,
                                            1) __launch_bounds__(kiln::norm::cluster_threads)
    rms_norm_cluster(const DTYPE* x, const DTYPE* weight, DTYPE* y, int64 rows, int64 x_stride) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.weight = weight;
  call.y = y;
  kiln::norm::cluster_rows<kiln::norm::RmsNorm>(call, rows);
}
