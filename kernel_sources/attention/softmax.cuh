// Sums under a running maximum, the arithmetic of a softmax that is made piece by piece. Scores are
// to base 2.
//
//   SOFTCAP   bound of the scores, 0 for none
#pragma once

#include "kernel_sources/device/dtype.cuh"

static_assert(SOFTCAP >= 0.0, "a softcap is a bound of magnitudes");

namespace kiln::attention {

inline constexpr float log2_e = 1.4426950408889634f;

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// A score to base 2, from q . k with all scales in it.
__device__ __forceinline__ float score_of(float dot) {
  constexpr float cap = static_cast<float>(SOFTCAP);
  constexpr float divisor = cap > 0 ? cap : 1.0f;  // no division by zero where there is none
  if constexpr (cap > 0) dot = cap * tanhf(dot / divisor);
  return dot * log2_e;
}

// 2^(x - max), and 0 where nothing has been seen: there x, and perhaps max too, is minus infinity.
// NaN stays NaN.
__device__ __forceinline__ float weight_of(float x, float max) {
  return x == minus_infinity() ? 0.0f : exp2f(x - max);
}

}  // namespace kiln::attention
