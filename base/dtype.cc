#include <kiln/dtype.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace kiln::inline v1 {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 12> kNames = {{
    {DType::float16, "float16"},
    {DType::bfloat16, "bfloat16"},
    {DType::float32, "float32"},
    {DType::float64, "float64"},
    {DType::float8_e4m3, "float8_e4m3"},
    {DType::float8_e5m2, "float8_e5m2"},
    {DType::int8, "int8"},
    {DType::int16, "int16"},
    {DType::int32, "int32"},
    {DType::int64, "int64"},
    {DType::uint8, "uint8"},
    {DType::boolean, "bool"},
}};

}  // namespace

std::string_view to_string(DType dtype) {
  for (const auto& [value, name] : kNames) {
    if (value == dtype) return name;
  }
  return "invalid";
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const auto& [value, name] : kNames) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace kiln::inline v1
