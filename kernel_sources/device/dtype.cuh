// Element types of device code and their conversion to and from float. A dtype constant of a
// program is rendered as one of these names (DTYPE = kiln::float16). Written with inline PTX
// instead of the toolkit's cuda_fp16.h and cuda_bf16.h: those add 7 ms to the compilation of an
// empty kernel (17 ms), this file 1 ms, and no include path is needed.
//
// Conversions round to nearest, ties to even; subnormals are kept; overflow gives infinity, NaN
// stays NaN.
#pragma once

namespace kiln {

using int64 = long long;
using uint64 = unsigned long long;
using uint32 = unsigned int;
using uint16 = unsigned short;
using float32 = float;
using float64 = double;

struct float16 {
  uint16 bits;
};
struct bfloat16 {
  uint16 bits;
};
static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2 && sizeof(int64) == 8);

__device__ __forceinline__ float to_float(float32 v) { return v; }
__device__ __forceinline__ float to_float(float16 v) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
  return f;
}
__device__ __forceinline__ float to_float(bfloat16 v) {
  return __uint_as_float(static_cast<uint32>(v.bits) << 16);
}

// The nearest value of type T.
template <typename T>
__device__ __forceinline__ T from_float(float f);
template <>
__device__ __forceinline__ float32 from_float<float32>(float f) {
  return f;
}
template <>
__device__ __forceinline__ float16 from_float<float16>(float f) {
  float16 v;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v.bits) : "f"(f));
  return v;
}
template <>
__device__ __forceinline__ bfloat16 from_float<bfloat16>(float f) {
  bfloat16 v;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v.bits) : "f"(f));
  return v;
}

// The same for two neighbours in one register; `low` is the element at the lower address.
struct FloatPair {
  float low, high;
};
template <typename T>
__device__ __forceinline__ FloatPair unpack(uint32 packed);
template <>
__device__ __forceinline__ FloatPair unpack<float16>(uint32 packed) {
  FloatPair p;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
      : "=f"(p.low), "=f"(p.high)
      : "r"(packed));
  return p;
}
template <>
__device__ __forceinline__ FloatPair unpack<bfloat16>(uint32 packed) {
  return {__uint_as_float(packed << 16), __uint_as_float(packed & 0xffff0000u)};
}

template <typename T>
__device__ __forceinline__ uint32 pack(float low, float high);
template <>
__device__ __forceinline__ uint32 pack<float16>(float low, float high) {
  uint32 packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
template <>
__device__ __forceinline__ uint32 pack<bfloat16>(float low, float high) {
  uint32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

}  // namespace kiln
