// Lines that stand for many calls.
#include "runtime/call_generators.h"

#include "runtime/json_text.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kiln::internal {
namespace {

using ::kiln::testing::is_ok;
using ::kiln::testing::status_is;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

const Signature& norm() {
  static const Signature signature = [] {
    Signature s;
    s.op = "NormOp";
    s.params = {{"shape", ParamType::integers, {}},
                {"eps", ParamType::number, 1e-5},
                {"mode", ParamType::text, std::string("plain")}};
    s.inputs = {{.name = "x", .dtypes = {DType::float16, DType::float32}, .shape = "*B, *@shape"},
                {.name = "weight", .dtype_of = "x", .shape = "*@shape", .optional = true}};
    s.outputs = {{.name = "y", .dtype_of = "x", .shape = "*B, *@shape"}};
    return s;
  }();
  return signature;
}

absl::StatusOr<GeneratedCalls> generate(std::string_view text, std::int64_t limit = 1000) {
  const absl::StatusOr<Json> json = parse_json(text);
  EXPECT_THAT(json, is_ok());
  return generate_calls(*json, norm(), limit);
}
std::vector<std::string> calls(std::string_view text) {
  const auto generated = generate(text);
  EXPECT_THAT(generated, is_ok());
  std::vector<std::string> out;
  if (!generated.ok()) return out;
  for (const GeneratedCall& one : generated->calls) out.push_back(one.call.dump());
  EXPECT_EQ(static_cast<std::int64_t>(out.size()), generated->count);
  return out;
}
std::vector<std::string> variants(std::string_view text) {
  const auto generated = generate(text);
  EXPECT_THAT(generated, is_ok());
  std::vector<std::string> out;
  if (!generated.ok()) return out;
  for (const GeneratedCall& one : generated->calls) out.push_back(one.variant);
  return out;
}

TEST(CallGeneratorsTest, APlainCallIsItself) {
  constexpr char kText[] =
      R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[2,8]}}})";
  EXPECT_THAT(calls(kText), ElementsAre(kText));
  EXPECT_TRUE(generate(kText)->is_one_call);
  EXPECT_THAT(variants(kText), ElementsAre(""));
}

// What is no tensor of the op is told when the call is read; to look for each would take for ever.
TEST(CallGeneratorsTest, ManyUnknownTensorsAreReadInLinearTime) {
  std::string text = R"({"inputs":{"x":{"shape":[[1,2],8]})";
  for (int i = 0; i < 100000; ++i) text += ",\"x" + std::to_string(i) + "\":{\"shape\":[[1,2]]}";
  EXPECT_EQ(generate(text + "}}")->count, 2);
}

TEST(CallGeneratorsTest, AListWhereOneValueIsExpectedGivesACallEach) {
  EXPECT_THAT(
      calls(R"({"inputs":{"x":{"shape":[[1,2],8]}}})"),
      ElementsAre(R"({"inputs":{"x":{"shape":[1,8]}}})", R"({"inputs":{"x":{"shape":[2,8]}}})"));
  EXPECT_THAT(variants(R"({"inputs":{"x":{"dtype":["float16","float32"],"shape":[[1,2]]}}})"),
              ElementsAre("inputs.x.dtype=\"float16\", inputs.x.shape[0]=1",
                          "inputs.x.dtype=\"float16\", inputs.x.shape[0]=2",
                          "inputs.x.dtype=\"float32\", inputs.x.shape[0]=1",
                          "inputs.x.dtype=\"float32\", inputs.x.shape[0]=2"));
  // A parameter that is a list stays one; its items may vary. One that is a number may vary itself.
  EXPECT_THAT(calls(R"({"params":{"shape":[2,4]}})"), ElementsAre(R"({"params":{"shape":[2,4]}})"));
  EXPECT_EQ(generate(R"({"params":{"shape":[2,[4,8]],"eps":[1e-5,1e-6]}})")->count, 4);
  EXPECT_EQ(generate(R"({"device":["cpu","cuda:0"],"tags":["a","b"]})")->count, 2);
}

TEST(CallGeneratorsTest, RangesCountByStepsAndByFactors) {
  const auto extents = [](const std::string& range) {
    std::vector<std::int64_t> out;
    const auto generated = generate(R"({"inputs":{"x":{"shape":[)" + range + "]}}}");
    EXPECT_THAT(generated, is_ok());
    for (const GeneratedCall& one : generated->calls)
      out.push_back(one.call["inputs"]["x"]["shape"][0].get<std::int64_t>());
    return out;
  };
  EXPECT_THAT(extents(R"({"from":3,"to":5})"), ElementsAre(3, 4, 5));
  EXPECT_THAT(extents(R"({"from":0,"to":10,"step":4})"), ElementsAre(0, 4, 8));
  EXPECT_THAT(extents(R"({"from":1,"to":16,"times":2})"), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(extents(R"({"from":3,"to":20,"times":2})"), ElementsAre(3, 6, 12));
  EXPECT_THAT(extents(R"([1,{"from":8,"to":16,"step":8},99])"), ElementsAre(1, 8, 16, 99));
  EXPECT_THAT(extents(R"({"from":7,"to":7})"), ElementsAre(7));
}

TEST(CallGeneratorsTest, VariablesVaryTogetherEverywhere) {
  EXPECT_THAT(
      calls(R"({"for":{"n":[4,8]},"params":{"shape":["$n"]},"inputs":{"x":{"shape":[1,"$n"]}}})"),
      ElementsAre(R"({"params":{"shape":[4]},"inputs":{"x":{"shape":[1,4]}}})",
                  R"({"params":{"shape":[8]},"inputs":{"x":{"shape":[1,8]}}})"));
  // Names that vary together, whole objects and null as values, and a text that begins with "$".
  EXPECT_THAT(
      calls(R"({"for":{"a,b":[[1,2],[3,4]]},"inputs":{"x":{"shape":["$b","$a"]}}})"),
      ElementsAre(R"({"inputs":{"x":{"shape":[2,1]}}})", R"({"inputs":{"x":{"shape":[4,3]}}})"));
  EXPECT_THAT(
      calls(
          R"({"for":{"w":[null,{"dtype":"float16"}]},"params":{"mode":"$$w"},"inputs":{"weight":"$w"}})"),
      ElementsAre(R"({"params":{"mode":"$w"},"inputs":{"weight":null}})",
                  R"({"params":{"mode":"$w"},"inputs":{"weight":{"dtype":"float16"}}})"));
}

TEST(CallGeneratorsTest, AllCombinationsAreDistinct) {
  const std::vector<std::string> all = calls(
      R"({"for":{"n":[1,2,3],"t":["float16","float32"]},"inputs":{"x":{"dtype":"$t","shape":[{"from":1,"to":5},"$n"]}}})");
  EXPECT_EQ(all.size(), 30u);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 30u);
}

TEST(CallGeneratorsTest, WhatIsTooMuchIsCountedAndNotMade) {
  const auto huge =
      generate(R"({"inputs":{"x":{"shape":[{"from":1,"to":1000000},{"from":1,"to":1000000}]}}})");
  ASSERT_THAT(huge, is_ok());
  EXPECT_EQ(huge->count, 1000000000000);
  EXPECT_TRUE(huge->calls.empty());
  const auto endless = generate(
      R"({"inputs":{"x":{"shape":[{"from":-9223372036854775807,"to":9223372036854775807},{"from":1,"to":9}]}}})");
  ASSERT_THAT(endless, is_ok());
  EXPECT_EQ(endless->count, std::numeric_limits<std::int64_t>::max());
}

TEST(CallGeneratorsTest, FaultsNameTheFieldAndTheValue) {
  const auto refused = [](std::string_view text, auto... fragments) {
    EXPECT_THAT(generate(text), status_is(kInvalid, AllOf(HasSubstr(fragments)...))) << text;
  };
  refused(R"({"inputs":{"x":{"shape":[[],8]}}})", "inputs.x.shape[0]", "at least one value");
  refused(R"({"inputs":{"x":{"shape":[{"from":5,"to":1}]}}})", "inputs.x.shape[0]", "A <= B");
  refused(R"({"inputs":{"x":{"shape":[{"from":1,"to":9,"step":0}]}}})", "a range");
  refused(R"({"inputs":{"x":{"shape":[{"from":0,"to":9,"times":2}]}}})", "a range");
  refused(R"({"inputs":{"x":{"shape":[{"from":1,"to":9,"times":1}]}}})", "a range");
  refused(R"({"inputs":{"x":{"shape":[{"from":1,"to":9,"times":2,"step":1}]}}})", "a range");
  refused(R"({"inputs":{"x":{"shape":[{"from":1.5,"to":9}]}}})", "1.5");
  refused(R"({"inputs":{"x":{"shape":[{"from":1,"until":9}]}}})", "until");
  refused(R"({"for":{},"op":"NormOp"})", "an object of variables");
  refused(R"({"for":{"n":4},"inputs":{"x":"$n"}})", "for.n", "got 4");
  refused(R"({"for":{"n":[4]},"inputs":{"x":"$m"}})", "n", "no use of it");
  refused(R"({"for":{"n":[4]},"inputs":{"x":"$n","y":"$m"}})", "\"$m\" must be a variable");
  refused(R"({"for":{"n,n":[[1,2]]},"inputs":{"x":"$n"}})", "twice");
  refused(R"({"for":{"2n":[4]},"inputs":{"x":"$2n"}})", "must name variables");
  refused(R"({"for":{"a,b":[[1,2],[3]]},"inputs":{"x":["$a","$b"]}})", "for.a,b",
          "lists of 2 values");
}

absl::StatusOr<const Signature*> find(std::string_view op) {
  if (op == "NormOp") return &norm();
  return absl::NotFoundError("no op");
}

TEST(CallGeneratorsTest, AFileNamesTheLineAndTheCombination) {
  constexpr char kText[] =
      R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[[1,2,3],8]}}})"
      "\n";
  const auto lines = parse_calls(kText, "calls.jsonl", find, 3);
  ASSERT_THAT(lines, is_ok());
  ASSERT_EQ(lines->size(), 3u);
  EXPECT_EQ((*lines)[1].line, 1);
  EXPECT_EQ((*lines)[1].variant, "inputs.x.shape[0]=2");
  EXPECT_EQ((*lines)[1].call.args.inputs[0]->spec.shape[0], 2);
  EXPECT_THAT(
      parse_calls(kText, "calls.jsonl", find, 2),
      status_is(kInvalid, AllOf(HasSubstr("calls.jsonl:1"), HasSubstr("at most 2 more: got 3"))));
  // The limit is on the lines together, and plain lines do not count.
  const std::string twice = std::string(kText) + kText;
  EXPECT_THAT(parse_calls(twice, "calls.jsonl", find, 5),
              status_is(kInvalid, AllOf(HasSubstr("calls.jsonl:2"), HasSubstr("at most 2 more"))));
  EXPECT_THAT(
      parse_calls(
          R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[1,[8,9]]}}})",
          "calls.jsonl", find),
      status_is(kInvalid, AllOf(HasSubstr("calls.jsonl:1: with inputs.x.shape[1]=9"))));
}

}  // namespace
}  // namespace kiln::internal
