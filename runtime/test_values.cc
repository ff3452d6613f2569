#include "runtime/test_values.h"

#include "runtime/dtype_convert.h"

#include <random>

namespace kiln::internal {
namespace {

constexpr std::size_t kTableLength = 100'003;  // prime

bool is_float(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
    case DType::float32:
    case DType::float64:
    case DType::float8_e4m3:
    case DType::float8_e5m2:
      return true;
    default:
      return false;
  }
}

}  // namespace

TestValues::TestValues(DType dtype, std::uint64_t seed)
    : element_bytes_(static_cast<std::size_t>(size_of(dtype))),
      values_(kTableLength),
      bytes_(kTableLength * element_bytes_) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.5, 1);
  for (double& value : values_) {
    value = normal(random);
    if (dtype == DType::boolean)
      value = value > 0.5 ? 1 : 0;
    else if (!is_float(dtype))
      value *= 10;
  }
  store_elements(dtype, bytes_.data(), values_.data(), kTableLength);
  load_elements(dtype, values_.data(), bytes_.data(), kTableLength);
}

}  // namespace kiln::internal
