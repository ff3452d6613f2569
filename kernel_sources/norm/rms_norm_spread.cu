// RMSNorm, all multiprocessors for each row:
// y = x * rstd * weight.
#include "kernel_sources/norm/row_spread.cuh"

using kiln::int64;
using kiln::norm::Moments;

// Launched before `rms_norm_spread`: `count` moments to zero.
extern "C" __global__ void __launch_bounds__(256)
    rms_norm_spread_begin(uint4* moments, int64 count) {
  kiln::norm::clear_words(moments, count);
}

extern "C" __global__ void __launch_bounds__(kiln::norm::spread_threads, 1)
    rms_norm_spread(const DTYPE* x, const DTYPE* weight, DTYPE* y, int64 rows, int64 x_stride,
                    Moments* moments) {
  kiln::norm::Operands<DTYPE> call;
  call.x = x;
  call.x_stride = x_stride;
  call.weight = weight;
  call.y = y;
  kiln::norm::spread_rows<kiln::norm::RmsNorm>(call, rows, moments);
}
