#include "runtime/dtype_convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace kiln::internal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Narrow {
  DType dtype;
  int bits;
};
constexpr Narrow kNarrow[] = {
    {DType::float16, 16}, {DType::bfloat16, 16}, {DType::float8_e4m3, 8}, {DType::float8_e5m2, 8}};

std::uint32_t encode(DType dtype, double value) {
  std::uint32_t bits = 0;
  store_element(dtype, &bits, value);
  return bits;
}

double decode(DType dtype, std::uint32_t bits) { return load_element(dtype, &bits); }

TEST(DtypeConvertTest, EveryNarrowFloatReadsBackAsItself) {
  for (const auto& [dtype, bits] : kNarrow) {
    for (std::uint32_t code = 0; code < 1u << bits; ++code) {
      const double value = decode(dtype, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(dtype, encode(dtype, value))));
      } else {
        ASSERT_EQ(encode(dtype, value), code) << to_string(dtype) << " " << code;
      }
    }
  }
}

// All finite values in order, by the sign-and-magnitude order of their codes.
std::vector<double> positive_values(const Narrow& narrow) {
  std::vector<double> values;
  for (std::uint32_t code = 0; code < 1u << (narrow.bits - 1); ++code) {
    const double value = decode(narrow.dtype, code);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

TEST(DtypeConvertTest, CodesAreInOrderAndHalfWaysGoToEven) {
  for (const Narrow& narrow : kNarrow) {
    const std::vector<double> values = positive_values(narrow);
    for (std::uint32_t code = 0; code + 1 < values.size(); ++code) {
      const double low = values[code], high = values[code + 1];
      ASSERT_LT(low, high);
      const double middle = low + (high - low) / 2;  // exact: one bit more than the dtype has
      ASSERT_EQ(encode(narrow.dtype, middle), code % 2 == 0 ? code : code + 1)
          << to_string(narrow.dtype) << " " << middle;
      ASSERT_EQ(encode(narrow.dtype, std::nextafter(middle, 0)), code);
      ASSERT_EQ(encode(narrow.dtype, std::nextafter(middle, kInfinity)), code + 1);
      ASSERT_EQ(encode(narrow.dtype, -middle),
                encode(narrow.dtype, middle) | 1u << (narrow.bits - 1));
    }
  }
}

TEST(DtypeConvertTest, KnownCodes) {
  EXPECT_EQ(encode(DType::float16, 1), 0x3C00u);
  EXPECT_EQ(encode(DType::float16, -2), 0xC000u);
  EXPECT_EQ(encode(DType::float16, 65504), 0x7BFFu);
  EXPECT_EQ(encode(DType::float16, std::ldexp(1, -24)), 1u);
  EXPECT_EQ(encode(DType::bfloat16, 1), 0x3F80u);
  EXPECT_EQ(encode(DType::bfloat16, 3.140625), 0x4049u);
  EXPECT_EQ(encode(DType::float8_e4m3, 1), 0x38u);
  EXPECT_EQ(encode(DType::float8_e4m3, 448), 0x7Eu);
  EXPECT_EQ(encode(DType::float8_e4m3, std::ldexp(1, -9)), 1u);
  EXPECT_EQ(encode(DType::float8_e5m2, 1), 0x3Cu);
  EXPECT_EQ(encode(DType::float8_e5m2, 57344), 0x7Bu);
  EXPECT_EQ(decode(DType::float16, 0x3555), 0.333251953125);
}

TEST(DtypeConvertTest, BeyondTheLargestValue) {
  EXPECT_EQ(encode(DType::float16, 65519.99), 0x7BFFu);
  EXPECT_EQ(encode(DType::float16, 65520), 0x7C00u);
  EXPECT_EQ(encode(DType::float16, 1e300), 0x7C00u);
  EXPECT_EQ(encode(DType::float16, -kInfinity), 0xFC00u);
  EXPECT_EQ(encode(DType::bfloat16, 1e300), 0x7F80u);
  EXPECT_EQ(encode(DType::float8_e4m3, 1e300), 0x7Eu);
  EXPECT_EQ(encode(DType::float8_e4m3, 464), 0x7Eu);
  EXPECT_EQ(encode(DType::float8_e4m3, -kInfinity), 0xFEu);
  EXPECT_EQ(encode(DType::float8_e5m2, 1e300), 0x7Cu);
}

TEST(DtypeConvertTest, NanStaysNanAndZeroKeepsItsSign) {
  for (const auto& [dtype, bits] : kNarrow) {
    EXPECT_TRUE(std::isnan(decode(dtype, encode(dtype, kNan)))) << to_string(dtype);
    EXPECT_EQ(encode(dtype, -0.0), 1u << (bits - 1));
    EXPECT_EQ(encode(dtype, 1e-300), 0u);
    EXPECT_TRUE(std::isnan(decode(dtype, (1u << bits) - 1)))
        << "bytes of 0xFF are NaN: " << to_string(dtype);
  }
}

TEST(DtypeConvertTest, Float32IsTheMachinesOwn) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    const auto code = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &code, sizeof value);
    if (std::isnan(value)) continue;
    ASSERT_EQ(decode(DType::float32, code), static_cast<double>(value));
    ASSERT_EQ(encode(DType::float32, static_cast<double>(value)), code);
  }
}

TEST(DtypeConvertTest, IntegersAreRoundedAndClamped) {
  EXPECT_EQ(decode(DType::int8, encode(DType::int8, 2.5)), 2);
  EXPECT_EQ(decode(DType::int8, encode(DType::int8, 3.5)), 4);
  EXPECT_EQ(decode(DType::int8, encode(DType::int8, -1000)), -128);
  EXPECT_EQ(decode(DType::uint8, encode(DType::uint8, 255.6)), 255);
  EXPECT_EQ(decode(DType::uint8, encode(DType::uint8, -0.6)), 0);
  EXPECT_EQ(decode(DType::int32, encode(DType::int32, kNan)), 0);
  EXPECT_EQ(decode(DType::boolean, encode(DType::boolean, -3)), 1);
  std::int64_t wide = 0;
  store_element(DType::int64, &wide, 1e30);
  EXPECT_EQ(wide, std::numeric_limits<std::int64_t>::max());
  store_element(DType::int64, &wide, -std::ldexp(1.0, 63));
  EXPECT_EQ(wide, std::numeric_limits<std::int64_t>::min());
}

TEST(DtypeConvertTest, RowsOfElements) {
  const std::vector<double> values{1, -0.5, 1000, 0};
  std::vector<std::uint16_t> halves(values.size());
  store_elements(DType::float16, halves.data(), values.data(), values.size());
  std::vector<double> back(values.size());
  load_elements(DType::float16, back.data(), halves.data(), halves.size());
  EXPECT_EQ(back, values);
}

TEST(DtypeConvertTest, TheRoundingStepIsTheDistanceToTheNextValue) {
  for (const Narrow& narrow : kNarrow) {
    const std::vector<double> values = positive_values(narrow);
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      ASSERT_EQ(rounding_step(narrow.dtype, values[i]), values[i + 1] - values[i])
          << to_string(narrow.dtype) << values[i];
      ASSERT_EQ(rounding_step(narrow.dtype, -values[i]), values[i + 1] - values[i]);
    }
  }
  EXPECT_EQ(rounding_step(DType::float32, 1), std::ldexp(1, -23));
  EXPECT_EQ(rounding_step(DType::float64, 3), std::ldexp(1, -51));
  EXPECT_EQ(rounding_step(DType::float64, 0), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(rounding_step(DType::int32, 5), 0);
}

}  // namespace
}  // namespace kiln::internal
