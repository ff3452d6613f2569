// LayerNorm, LANES threads of a warp for each row: y = (x - mean) * rstd * weight + bias.
#include "kernel_sources/norm/row_warp.cuh"

using kiln::int64;

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    layer_norm_warp(const DTYPE* x, const DTYPE* weight, const DTYPE* bias, DTYPE* y, int64 rows,
                    int64 x_stride) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.weight = weight;
  call.bias = bias;
  call.y = y;
  kiln::norm::warp_rows<kiln::norm::LayerNorm>(call, rows);
}
