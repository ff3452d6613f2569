// float8_e4m3 (the "fn" variant: no infinities, one NaN, largest 448) as an element type, read
// only.
#pragma once

#include "kernel_sources/device/dtype.cuh"

namespace kiln {

struct float8_e4m3 {
  unsigned char bits;
};

// The values of two neighbours; the element at the lower address is in the low byte of `two`.
// Exact.
__device__ __forceinline__ FloatPair unpack_e4m3(uint32 two) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint32 halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16>(two)));
  return unpack<float16>(halves);
#else
  // The bits as a float16 with the exponent's bias of an e4m3: 2^8 times too small, subnormals
  // included.
  const uint32 low = (two & 0x7fu) << 7 | (two & 0x80u) << 8;
  const uint32 high = (two & 0x7f00u) << 15 | (two & 0x8000u) << 16;
  FloatPair p = unpack<float16>(low | high);
  p.low = (two & 0x7fu) == 0x7fu ? __uint_as_float(0x7fffffffu) : p.low * 256.0f;
  p.high = (two & 0x7f00u) == 0x7f00u ? __uint_as_float(0x7fffffffu) : p.high * 256.0f;
  return p;
#endif
}

}  // namespace kiln
