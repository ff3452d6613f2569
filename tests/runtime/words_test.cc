#include <kiln/any_call.h>
#include <kiln/words.h>

#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <limits>
#include <string>

namespace kiln {
namespace {

struct NormCall {
  std::int64_t n = 0;
  double eps = 1e-5;
  DType dtype = DType::float16;
  bool affine = true;
  Dims tail{};
  KILN_CALL_SPEC(NormCall, n, eps, dtype, affine, tail)
};

TEST(WordsTest, FieldValuesReadLikeTheirType) {
  EXPECT_EQ(to_string(FieldValue(std::int64_t{-4096})), "-4096");
  EXPECT_EQ(to_string(FieldValue(true)), "true");
  EXPECT_EQ(to_string(FieldValue(std::string("plain"))), "plain");
  EXPECT_EQ(to_string(FieldValue(std::vector<std::int64_t>{1, -2, 3})), "[1, -2, 3]");
  EXPECT_EQ(to_string(FieldValue(std::vector<std::int64_t>{})), "[]");
}

TEST(WordsTest, DoublesHaveTheFewestDigitsThatReadBack) {
  EXPECT_EQ(to_string(FieldValue(1e-5)), "1e-05");
  EXPECT_EQ(to_string(FieldValue(0.1)), "0.1");
  EXPECT_EQ(to_string(FieldValue(1.0)), "1");
  EXPECT_EQ(to_string(FieldValue(-0.0)), "-0");
  for (double value :
       {0.1 + 0.2, 1.0 / 3, 5e-324, std::numeric_limits<double>::max(), 123456789.125}) {
    EXPECT_EQ(std::strtod(to_string(FieldValue(value)).c_str(), nullptr), value);
  }
  EXPECT_EQ(to_string(FieldValue(std::numeric_limits<double>::infinity())), "inf");
}

TEST(WordsTest, NoLocaleChangesANumber) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "C"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;  // not every machine has them
    EXPECT_EQ(to_string(FieldValue(1234567.5)), "1234567.5") << locale;
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST(WordsTest, CallsShowOnlyWhatSomebodySet) {
  EXPECT_EQ(to_string(CallRef(NormCall{})), "NormCall on cuda:0");
  NormCall call{.n = 4096, .dtype = DType::bfloat16, .tail = {4, 2}};
  call.where.device = {DeviceType::cpu(), 0};
  EXPECT_EQ(to_string(CallRef(call)), "NormCall n=4096 dtype=bfloat16 tail=[4, 2] on cpu:0");
}

TEST(WordsTest, StatedFactsAreShown) {
  const NormCall call{.n = 1, .where = stated(90, 132)};
  EXPECT_EQ(to_string(CallRef(call)), "NormCall n=1 arch=90 sm_count=132 on cuda:0");
  const NormCall budget{.where = stated(80, 0, 1024)};
  EXPECT_EQ(to_string(CallRef(budget)), "NormCall arch=80 smem_budget=1024 on cuda:0");
}

}  // namespace
}  // namespace kiln
