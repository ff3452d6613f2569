// Adaptive LayerNorm with a gate, LANES threads of a warp for each row: y = gate * (scale * norm(x)
// + shift).
#include "kernel_sources/norm/row_warp.cuh"

static_assert(HAS_WEIGHT == 0 && HAS_BIAS == 0,
              "scale and shift take the place of weight and bias");

using kiln::int64;

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    ada_layer_norm_zero_warp(const DTYPE* x, const DTYPE* scale, const DTYPE* shift,
                             const DTYPE* gate, DTYPE* y, int64 rows, int64 x_stride,
                             int64 scale_stride, int64 shift_stride, int64 gate_stride) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.scale = scale;
  call.scale_stride = scale_stride;
  call.shift = shift;
  call.shift_stride = shift_stride;
  call.gate = gate;
  call.gate_stride = gate_stride;
  call.y = y;
  kiln::norm::warp_rows<kiln::norm::AdaLayerNormZero>(call, rows);
}
