#include "runtime/shape_pattern.h"

#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>

namespace kiln::internal {
namespace {

using ::kiln::testing::is_ok;
using ::kiln::testing::status_is;
using ::testing::HasSubstr;
using ::testing::Not;

ShapeTerms terms_of(std::string_view pattern) {
  const auto terms = parse_shape_pattern(pattern);
  EXPECT_THAT(terms, is_ok()) << pattern;
  return terms.ok() ? *terms : ShapeTerms();
}

const ParamValues kParams = {{"shape", std::vector<std::int64_t>{4, 5}},
                             {"k", std::int64_t{7}},
                             {"eps", 1e-5},
                             {"long", std::vector<std::int64_t>(9, 1)}};

TEST(ShapePatternTest, ReadsEveryKindOfTerm) {
  using Kind = ShapeTerm::Kind;
  static constexpr std::string_view kText = " *B, C,3 ,@k,*@shape";
  const ShapeTerms terms = terms_of(kText);
  ASSERT_EQ(terms.size(), 5u);
  EXPECT_EQ(terms[0].kind, Kind::list);
  EXPECT_EQ(terms[0].name, "B");
  EXPECT_EQ(terms[1].kind, Kind::dim);
  EXPECT_EQ(terms[1].name, "C");
  EXPECT_EQ(terms[2].kind, Kind::extent);
  EXPECT_EQ(terms[2].extent, 3);
  EXPECT_EQ(terms[3].kind, Kind::param);
  EXPECT_EQ(terms[3].name, "k");
  EXPECT_EQ(terms[4].kind, Kind::param_list);
  EXPECT_EQ(terms[4].name, "shape");
}

TEST(ShapePatternTest, EmptyPatternIsAScalar) {
  EXPECT_TRUE(terms_of("").empty());
  EXPECT_TRUE(terms_of("  ").empty());
  ShapeBindings bindings(kParams);
  EXPECT_TRUE(*bindings.match(terms_of(""), Dims()));
  EXPECT_FALSE(*bindings.match(terms_of(""), Dims({1})));
}

TEST(ShapePatternTest, RefusesWhatIsNoTermAndNamesIt) {
  for (const char* bad : {",", "A,", ",A", "A,,B", "-1", "3x", "*", "@", "*@", "@*A", "**A", "A B",
                          "A-B", "*3", "99999999999999999999", "A;B", "é"}) {
    EXPECT_THAT(parse_shape_pattern(bad),
                status_is(absl::StatusCode::kInvalidArgument,
                          HasSubstr("shape pattern \"" + std::string(bad))))
        << bad;
  }
}

TEST(ShapePatternTest, ANameHasOneExtentEverywhere) {
  ShapeBindings bindings(kParams);
  EXPECT_TRUE(*bindings.match(terms_of("A,B"), Dims({2, 3})));
  EXPECT_TRUE(*bindings.match(terms_of("B,A"), Dims({3, 2})));
  EXPECT_FALSE(*bindings.match(terms_of("B,A"), Dims({2, 3})));
  EXPECT_FALSE(*bindings.match(terms_of("A"), Dims({3})));
}

TEST(ShapePatternTest, ANameMayComeTwiceInOnePattern) {
  EXPECT_TRUE(*ShapeBindings(kParams).match(terms_of("N,N"), Dims({4, 4})));
  EXPECT_FALSE(*ShapeBindings(kParams).match(terms_of("N,N"), Dims({4, 5})));
}

TEST(ShapePatternTest, AListTakesWhatTheOthersLeave) {
  for (const Dims& batch : {Dims(), Dims({9}), Dims({2, 0, 3}), Dims({1, 1, 1, 1, 1, 1})}) {
    std::vector<std::int64_t> extents(batch.begin(), batch.end());
    extents.insert(extents.end(), {4, 5});
    ShapeBindings bindings(kParams);
    EXPECT_TRUE(*bindings.match(terms_of("*B,*@shape"), *Dims::from(extents)));
    EXPECT_EQ(*bindings.shape_of(terms_of("*B")), batch);
    EXPECT_TRUE(*bindings.match(terms_of("*B"), batch));
    EXPECT_FALSE(*bindings.match(terms_of("*B,1"), batch));
  }
}

TEST(ShapePatternTest, AListMayStandInTheMiddle) {
  ShapeBindings bindings(kParams);
  EXPECT_TRUE(*bindings.match(terms_of("B,*L,C"), Dims({2, 8, 9, 3})));
  EXPECT_EQ(*bindings.shape_of(terms_of("C,*L")), Dims({3, 8, 9}));
  EXPECT_FALSE(*ShapeBindings(kParams).match(terms_of("B,*L,C"), Dims({2})));
}

TEST(ShapePatternTest, ABoundListMatchesExactly) {
  ShapeBindings bindings(kParams);
  ASSERT_TRUE(*bindings.match(terms_of("*B,C"), Dims({2, 3, 4})));
  EXPECT_TRUE(*bindings.match(terms_of("*B,*D"), Dims({2, 3, 5, 6})));
  EXPECT_EQ(*bindings.shape_of(terms_of("*D")), Dims({5, 6}));
  EXPECT_FALSE(*bindings.match(terms_of("*B"), Dims({3, 2})));
  EXPECT_FALSE(*bindings.match(terms_of("*B"), Dims({2, 3, 4})));
}

TEST(ShapePatternTest, TwoListsOfUnknownLengthAreRefused) {
  EXPECT_THAT(ShapeBindings(kParams).match(terms_of("*A,*B"), Dims({1, 2})),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("*A and *B")));
}

TEST(ShapePatternTest, ParametersAreMatchedByValue) {
  ShapeBindings bindings(kParams);
  EXPECT_TRUE(*bindings.match(terms_of("@k,*@shape"), Dims({7, 4, 5})));
  EXPECT_FALSE(*bindings.match(terms_of("@k,*@shape"), Dims({7, 5, 4})));
  EXPECT_FALSE(*bindings.match(terms_of("@k"), Dims({8})));
  EXPECT_EQ(*bindings.shape_of(terms_of("*@shape,@k,2")), Dims({4, 5, 7, 2}));
}

TEST(ShapePatternTest, WrongParametersAreErrorsNotMismatches) {
  EXPECT_THAT(ShapeBindings(kParams).match(terms_of("@eps"), Dims({1})),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("1e-05")));
  EXPECT_THAT(ShapeBindings(kParams).match(terms_of("*@k"), Dims({1})), Not(is_ok()));
  EXPECT_THAT(ShapeBindings(kParams).match(terms_of("@shape"), Dims({1})), Not(is_ok()));
  EXPECT_THAT(ShapeBindings(kParams).match(terms_of("@none"), Dims({1})),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("none")));
  EXPECT_THAT(ShapeBindings(kParams).match(terms_of("*@long"), Dims({1})),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("long")));
}

TEST(ShapePatternTest, ShapesNeedKnownNamesAndFewDimensions) {
  ShapeBindings bindings(kParams);
  EXPECT_THAT(bindings.shape_of(terms_of("A")),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("A")));
  ASSERT_TRUE(*bindings.match(terms_of("*L"), Dims({1, 2, 3, 4, 5, 6, 7})));
  EXPECT_THAT(bindings.shape_of(terms_of("*L,1")), is_ok());
  EXPECT_THAT(bindings.shape_of(terms_of("*L,1,1")), Not(is_ok()));
}

TEST(ShapePatternTest, DescribesWhatIsKnownAsNumbers) {
  ShapeBindings bindings(kParams);
  EXPECT_EQ(bindings.describe(terms_of("*B,C,*@shape,3")), "[*B, C, 4, 5, 3]");
  ASSERT_TRUE(*bindings.match(terms_of("*B,C"), Dims({8, 9, 10})));
  EXPECT_EQ(bindings.describe(terms_of("*B,C,@k")), "[8, 9, 10, 7]");
}

}  // namespace
}  // namespace kiln::internal
