#include "runtime/dtype_convert.h"

#include <kiln/registry.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kiln::internal {
namespace {

// A binary floating-point format narrower than double: one sign bit, then exponent, then mantissa.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // the largest exponent holds infinity and NaNs; else only its all-ones
                      // mantissa is NaN
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int min_exponent() const { return 1 - bias(); }  // of the smallest normal value
  constexpr std::uint32_t exponent_mask() const { return (1u << exponent_bits) - 1; }
  constexpr std::uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1; }
  // The largest finite value's bits.
  constexpr std::uint32_t max_finite() const {
    return has_infinity ? (exponent_mask() << mantissa_bits) - 1
                        : (exponent_mask() << mantissa_bits | mantissa_mask()) - 1;
  }
};

constexpr Format kFloat16{5, 10, true};
constexpr Format kBfloat16{8, 7, true};
constexpr Format kFloat32{8, 23, true};
constexpr Format kFloat8E4m3{4, 3, false};
constexpr Format kFloat8E5m2{5, 2, true};

std::uint32_t encode(const Format& f, double value) {
  const std::uint32_t sign = (std::signbit(value) ? 1u : 0u) << (f.exponent_bits + f.mantissa_bits);
  const std::uint32_t top = f.exponent_mask() << f.mantissa_bits;
  if (std::isnan(value))
    return sign | top | (f.has_infinity ? 1u << (f.mantissa_bits - 1) : f.mantissa_mask());
  const std::uint32_t overflow = f.has_infinity ? top : f.max_finite();
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return sign | overflow;
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = [0.5, 1) * 2^exponent
  exponent = std::max(exponent - 1, f.min_exponent());
  // In units of the last place: at most 24 bits, so exact in double but for the one rounding to
  // nearest even.
  const double units = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  if (exponent > f.bias() + 1) return sign | overflow;
  // Adding instead of or-ing lets a mantissa that rounded up carry into the exponent, also out of
  // the subnormals.
  const auto hidden = std::uint64_t{1} << f.mantissa_bits;
  const auto bits =
      (static_cast<std::uint64_t>(exponent - f.min_exponent() + 1) << f.mantissa_bits) +
      static_cast<std::uint64_t>(units) - hidden;
  return sign | static_cast<std::uint32_t>(std::min<std::uint64_t>(bits, std::uint64_t{overflow}));
}

double decode(const Format& f, std::uint32_t bits) {
  const bool negative = (bits >> (f.exponent_bits + f.mantissa_bits) & 1u) != 0;
  const std::uint32_t exponent = bits >> f.mantissa_bits & f.exponent_mask();
  const std::uint32_t mantissa = bits & f.mantissa_mask();
  double magnitude;
  if (exponent == f.exponent_mask() && f.has_infinity) {
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == f.exponent_mask() && mantissa == f.mantissa_mask()) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, f.min_exponent() - f.mantissa_bits);
  } else {
    magnitude = std::ldexp(mantissa | 1u << f.mantissa_bits,
                           static_cast<int>(exponent) - f.bias() - f.mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

template <class T>
void put(void* element, T value) {
  std::memcpy(element, &value, sizeof value);
}
template <class T>
T get(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

template <class T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  // The upper bound of int64 is no double: the next one above it is 2^63.
  if (rounded >= std::ldexp(1.0, std::numeric_limits<T>::digits))
    return std::numeric_limits<T>::max();
  if (rounded < static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(rounded);
}

const Format* format_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return &kFloat16;
    case DType::bfloat16:
      return &kBfloat16;
    case DType::float32:
      return &kFloat32;
    case DType::float8_e4m3:
      return &kFloat8E4m3;
    case DType::float8_e5m2:
      return &kFloat8E5m2;
    default:
      return nullptr;
  }
}

}  // namespace

void store_element(DType dtype, void* element, double value) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return put(element, static_cast<std::uint16_t>(encode(*format_of(dtype), value)));
    case DType::float8_e4m3:
    case DType::float8_e5m2:
      return put(element, static_cast<std::uint8_t>(encode(*format_of(dtype), value)));
    case DType::float32:
      return put(element, static_cast<float>(value));
    case DType::float64:
      return put(element, value);
    case DType::int8:
      return put(element, to_integer<std::int8_t>(value));
    case DType::int16:
      return put(element, to_integer<std::int16_t>(value));
    case DType::int32:
      return put(element, to_integer<std::int32_t>(value));
    case DType::int64:
      return put(element, to_integer<std::int64_t>(value));
    case DType::uint8:
      return put(element, to_integer<std::uint8_t>(value));
    case DType::boolean:
      return put(element, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
  }
}

double load_element(DType dtype, const void* element) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return decode(*format_of(dtype), get<std::uint16_t>(element));
    case DType::float8_e4m3:
    case DType::float8_e5m2:
      return decode(*format_of(dtype), get<std::uint8_t>(element));
    case DType::float32:
      return static_cast<double>(get<float>(element));
    case DType::float64:
      return get<double>(element);
    case DType::int8:
      return get<std::int8_t>(element);
    case DType::int16:
      return get<std::int16_t>(element);
    case DType::int32:
      return get<std::int32_t>(element);
    case DType::int64:
      return static_cast<double>(get<std::int64_t>(element));
    case DType::uint8:
      return get<std::uint8_t>(element);
    case DType::boolean:
      return get<std::uint8_t>(element) != 0 ? 1 : 0;
  }
  return 0;
}

void store_elements(DType dtype, void* elements, const double* values, std::size_t count) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  auto* to = static_cast<char*>(elements);
  for (std::size_t i = 0; i < count; ++i) store_element(dtype, to + i * size, values[i]);
}

void load_elements(DType dtype, double* values, const void* elements, std::size_t count) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  const auto* from = static_cast<const char*>(elements);
  for (std::size_t i = 0; i < count; ++i) values[i] = load_element(dtype, from + i * size);
}

double rounding_step(DType dtype, double value) {
  int mantissa_bits = 0, min_exponent = 0;
  if (dtype == DType::float64) {
    mantissa_bits = 52;
    min_exponent = std::numeric_limits<double>::min_exponent - 1;
  } else if (const Format* format = format_of(dtype)) {
    mantissa_bits = format->mantissa_bits;
    min_exponent = format->min_exponent();
  } else {
    return 0;
  }
  const double magnitude = std::fabs(value);
  if (!(magnitude <= std::numeric_limits<double>::max()))
    return std::numeric_limits<double>::quiet_NaN();
  const int exponent =
      magnitude == 0 ? min_exponent : std::max(std::ilogb(magnitude), min_exponent);
  return std::ldexp(1.0, exponent - mantissa_bits);
}

}  // namespace kiln::internal

namespace kiln::inline v1 {

double round_to(DType dtype, double value) {
  alignas(8) char element[8];
  internal::store_element(dtype, element, value);
  return internal::load_element(dtype, element);
}

}  // namespace kiln::inline v1
