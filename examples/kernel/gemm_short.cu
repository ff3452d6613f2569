// d = a . b^T for K < 8: a thread an element of d.
//
//   DTYPE   element type       K   elements of a row       THREADS   of a block
#include "kernel_sources/device/dtype.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_short(const DTYPE* a, const DTYPE* b, DTYPE* d, kiln::int64 m, kiln::int64 n,
               kiln::int64 a_row, kiln::int64 b_row) {
  const kiln::int64 at = static_cast<kiln::int64>(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= m * n) return;
  const DTYPE* x = a + at / n * a_row;
  const DTYPE* y = b + at % n * b_row;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < K; ++i) sum += kiln::to_float(x[i]) * kiln::to_float(y[i]);
  d[at] = kiln::from_float<DTYPE>(sum);
}
