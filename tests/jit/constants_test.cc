#include "jit/engine.h"
#include "jit/target.h"
#include "tests/jit/jit_test_util.h"

#include <cstdlib>
#include <limits>

namespace kiln::jit {
namespace {

std::string rendered(Constant value) {
  const absl::StatusOr<std::string> text = render_constant({.name = "C", .value = value});
  return text.ok() ? text->substr(2) : message_of(text.status());
}

TEST(RenderConstantTest, IntegersAreDecimal) {
  EXPECT_EQ(rendered(std::int64_t{0}), "0");
  EXPECT_EQ(rendered(std::int64_t{-1234567}), "-1234567");
  EXPECT_EQ(rendered(std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(rendered(std::numeric_limits<std::int64_t>::min()), "(-9223372036854775807-1)");
}

TEST(RenderConstantTest, DoublesAreExact) {
  EXPECT_EQ(rendered(1e-5), "0x1.4f8b588e368f1p-17");
  EXPECT_EQ(rendered(-0.0), "-0x0p+0");
  for (const double value :
       {0.0, 0.1, -1.0 / 3, 1e308, 5e-324, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(std::strtod(rendered(value).c_str(), nullptr), value);
  }
}

TEST(RenderConstantTest, BoolsAndDtypes) {
  EXPECT_EQ(rendered(true), "1");
  EXPECT_EQ(rendered(false), "0");
  EXPECT_EQ(rendered(DType::float16), "kiln::float16");
  EXPECT_EQ(rendered(DType::float8_e4m3), "kiln::float8_e4m3");
  EXPECT_EQ(rendered(DType::boolean), "kiln::boolean");
}

TEST(RenderConstantTest, WhatIsNoConstantIsRefused) {
  EXPECT_EQ(rendered(std::numeric_limits<double>::infinity()),
            "constant C: must be finite: got inf");
  EXPECT_EQ(rendered(-std::numeric_limits<double>::infinity()),
            "constant C: must be finite: got -inf");
  EXPECT_EQ(rendered(std::numeric_limits<double>::quiet_NaN()),
            "constant C: must be finite: got nan");
  EXPECT_NE(rendered(static_cast<DType>(99)).find("got number 99"), std::string::npos);
  for (const char* name : {"", "1A", "A B", "A=1", "A-B", "\xc3\xa4"}) {
    const auto refused = render_constant({.name = name, .value = true});
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << name;
  }
}

TEST(RenderConstantTest, CommaLocaleChangesNothing) {
  const CommaLocale comma;
  EXPECT_EQ(rendered(std::int64_t{1234567}), "1234567");
  EXPECT_EQ(rendered(1.5), "0x1.8p+0");
}

TEST(TargetTest, NameAndTextAreInverse) {
  EXPECT_EQ(target_name(90, false), "sm_90");
  EXPECT_EQ(target_name(90, true), "sm_90a");
  EXPECT_EQ(target_name(80, true), "sm_80");  // there is no sm_80a
  for (const char* text : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"}) {
    const auto target = parse_target(text);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target_name(target->arch, target->arch_specific), text);
    EXPECT_EQ(*parse_target(std::string_view(text).substr(3)), *target);
  }
}

TEST(TargetTest, UnknownTextIsRefusedWithWhatIsKnown) {
  for (const char* text : {"", "sm_", "sm_91", "90b", "sm_80a", "sm_90 ", "compute_90", "-90",
                           "9000000000000", "sm_sm_90"}) {
    const auto target = parse_target(text);
    ASSERT_TRUE(absl::IsInvalidArgument(target.status())) << text;
    EXPECT_TRUE(contains(target.status(), "80, 86, 87, 89, 90, 100")) << target.status();
    EXPECT_TRUE(contains(target.status(), std::string("'") + text + "'")) << target.status();
  }
}

}  // namespace
}  // namespace kiln::jit
