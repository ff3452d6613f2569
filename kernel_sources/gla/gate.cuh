// The gate of a token, from its logarithm. Constants of the family:
//
//   DTYPE   element type     DIM_K, DIM_V   of the state      SCALE   of q      HAS_STATE   1:
//   there is an initial state
#pragma once

#include "kernel_sources/device/dtype.cuh"

static_assert(DIM_K >= 1 && DIM_K <= 256 && DIM_V >= 1, "a state has up to 256 rows");
static_assert(HAS_STATE == 0 || HAS_STATE == 1, "HAS_STATE is a choice");

namespace kiln::gla {

// exp(min(log_gate, 0)): the exponent is never positive. NaN stays NaN.
__device__ __forceinline__ float gate_of(float log_gate) {
  return expf(log_gate > 0 ? 0.0f : log_gate);
}

}  // namespace kiln::gla
