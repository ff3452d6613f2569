#pragma once

#include <cstdint>

// Element types for host kernels: the names that a DType constant is rendered as. float16 and
// bfloat16 are storage; arithmetic is done in float. Pointers to elements may have any alignment.
namespace kiln {

struct float16 {
  std::uint16_t bits;
};
struct bfloat16 {
  std::uint16_t bits;
};
using float32 = float;
using float64 = double;
using int8 = std::int8_t;
using int16 = std::int16_t;
using int32 = std::int32_t;
using int64 = std::int64_t;
using uint8 = std::uint8_t;
using boolean = std::uint8_t;

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// All conversions below are exact or round to nearest even, keep infinities and signed zeros, and
// turn any NaN into a NaN. They select instead of branching, so that loops over them are
// vectorised.
inline float to_float(float v) { return v; }
inline float to_float(double v) { return static_cast<float>(v); }
inline float to_float(bfloat16 v) {
  return bits_as<float>(static_cast<std::uint32_t>(v.bits) << 16);
}

inline float to_float(float16 v) {
  const std::uint32_t sign = static_cast<std::uint32_t>(v.bits & 0x8000u) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(v.bits & 0x7fffu) << 13;
  // The exponent's bias grows from 15 to 127: a multiplication also normalises subnormal numbers.
  const std::uint32_t scaled = bits_as<std::uint32_t>(bits_as<float>(rest) * 0x1p112f);
  const std::uint32_t special = rest | 0x7f800000u;  // infinity and NaN
  return bits_as<float>(sign | (rest >= 0x0f800000u ? special : scaled));
}

inline void from_float(float v, float& out) { out = v; }
inline void from_float(float v, double& out) { out = v; }

inline void from_float(float v, bfloat16& out) {
  const std::uint32_t bits = bits_as<std::uint32_t>(v);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  out.bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

inline void from_float(float v, float16& out) {
  const std::uint32_t bits = bits_as<std::uint32_t>(v);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t rest = bits & 0x7fffffffu;
  // Below 2^-14 a float16 counts in steps of 2^-24, as a float between 0.5 and 1 does: adding 0.5
  // rounds there.
  const std::uint32_t small = bits_as<std::uint32_t>(bits_as<float>(rest) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  const std::uint32_t finite = rest < 0x38800000u ? small : normal;
  const std::uint32_t large =
      rest > 0x7f800000u ? 0x7e00u : 0x7c00u;  // from 65520 on: NaN or infinity
  out.bits = static_cast<std::uint16_t>(sign | (rest >= 0x477ff000u ? large : finite));
}

// The i-th element of an array of T at any address.
template <class T>
inline T read(const void* array, std::int64_t i) {
  T value;
  __builtin_memcpy(&value,
                   static_cast<const char*>(array) + i * static_cast<std::int64_t>(sizeof(T)),
                   sizeof(T));
  return value;
}
template <class T>
inline void write(void* array, std::int64_t i, T value) {
  __builtin_memcpy(static_cast<char*>(array) + i * static_cast<std::int64_t>(sizeof(T)), &value,
                   sizeof(T));
}

// Elements first .. first + count of an array of T as floats, and back.
template <class T>
inline void load(const void* array, std::int64_t first, int count, float* __restrict to) {
  for (int i = 0; i < count; ++i) to[i] = to_float(read<T>(array, first + i));
}
template <class T>
inline void store(const float* __restrict from, int count, void* array, std::int64_t first) {
  for (int i = 0; i < count; ++i) {
    T value;
    from_float(from[i], value);
    write<T>(array, first + i, value);
  }
}

#if defined(__F16C__)
// Eight at a time by the processor's own conversion. Builtins, because <immintrin.h> costs more
// compile time than all the rest.
template <>
inline void load<float16>(const void* array, std::int64_t first, int count, float* __restrict to) {
  typedef short Halves __attribute__((vector_size(16)));
  const char* from = static_cast<const char*>(array) + first * 2;
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    Halves halves;
    __builtin_memcpy(&halves, from + i * 2, sizeof halves);
    const auto floats = __builtin_ia32_vcvtph2ps256(halves);
    __builtin_memcpy(to + i, &floats, sizeof floats);
  }
  for (; i < count; ++i) to[i] = to_float(read<float16>(from, i));
}
template <>
inline void store<float16>(const float* __restrict from, int count, void* array,
                           std::int64_t first) {
  typedef float Floats __attribute__((vector_size(32)));
  char* to = static_cast<char*>(array) + first * 2;
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    Floats floats;
    __builtin_memcpy(&floats, from + i, sizeof floats);
    const auto halves = __builtin_ia32_vcvtps2ph256(floats, 0);  // 0: to nearest even
    __builtin_memcpy(to + i * 2, &halves, sizeof halves);
  }
  for (; i < count; ++i) {
    float16 value;
    from_float(from[i], value);
    write<float16>(to, i, value);
  }
}
#endif

}  // namespace kiln
