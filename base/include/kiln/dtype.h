#ifndef KILN_DTYPE_H_
#define KILN_DTYPE_H_

#include <kiln/export.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::inline v1 {

// Element types. The numbers reach build identities and artifacts: never change or reuse one.
enum class DType : std::uint8_t {
  float16 = 1,
  bfloat16 = 2,
  float32 = 3,
  float64 = 4,
  float8_e4m3 = 5,  // the "fn" variant: finite, one NaN, largest 448
  float8_e5m2 = 6,
  int8 = 7,
  int16 = 8,
  int32 = 9,
  int64 = 10,
  uint8 = 11,
  boolean = 12,  // one byte, 0 or 1; "bool" in text
};

// Bytes of one element; 0 for a value that is no DType.
constexpr int size_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
      return 2;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::float8_e4m3:
    case DType::float8_e5m2:
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

// "float16", "bool", ...; "invalid" for a value that is no DType.
KILN_EXPORT std::string_view to_string(DType dtype);
// The inverse; nullopt for any other text.
KILN_EXPORT std::optional<DType> parse_dtype(std::string_view text);

}  // namespace kiln::inline v1

#endif  // KILN_DTYPE_H_
