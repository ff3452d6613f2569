#include <kiln/signature.h>

#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>

#include <limits>

namespace kiln {
namespace {

using ::kiln::testing::is_ok;
using ::kiln::testing::status_is;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const Device kCuda{DeviceType::cuda(), 0};
const Device kCuda1{DeviceType::cuda(), 1};
const Device kHost{DeviceType::cpu(), 0};

// An op with one of each: a list, a parameter's shape, an optional input, one written in place, one
// on the host.
Signature everything() {
  Signature s;
  s.op = "EverythingOp";
  s.params = {{"shape", ParamType::integers, {}},
              {"eps", ParamType::number, 1e-5},
              {"causal", ParamType::boolean, false},
              {"mode", ParamType::text, std::string("plain")},
              {"groups", ParamType::integer, std::int64_t{1}}};
  s.inputs = {{.name = "x",
               .dtypes = {DType::float16, DType::bfloat16},
               .shape = "*B, *@shape",
               .contiguous = false},
              {.name = "weight", .dtype_of = "x", .shape = "*@shape", .optional = true},
              {.name = "state",
               .dtypes = {DType::float32},
               .shape = "*B, 2",
               .written = true,
               .contiguous = false},
              {.name = "lengths", .dtypes = {DType::int32}, .shape = "N", .host = true}};
  s.outputs = {{.name = "y", .dtype_of = "x", .shape = "*B, *@shape"},
               {.name = "count", .dtypes = {DType::int64}, .shape = "N", .optional = true}};
  return s;
}

const ParamValues kParams = {{"shape", std::vector<std::int64_t>{4}}};

std::optional<ArgSpec> arg(DType dtype, const Dims& shape, const Device& device = kCuda) {
  return contiguous_arg({device, dtype, shape});
}

CallArgs good() {
  CallArgs args;
  args.inputs = {arg(DType::float16, {2, 3, 4}), arg(DType::float16, {4}),
                 arg(DType::float32, {2, 3, 2}), arg(DType::int32, {5}, kHost)};
  args.outputs = {arg(DType::float16, {2, 3, 4}), arg(DType::int64, {5})};
  return args;
}

absl::Status checked(const CallArgs& args) { return check_call(everything(), kParams, args); }

TEST(SignatureTest, TheExampleIsGood) {
  EXPECT_THAT(check_signature(everything()), is_ok());
  EXPECT_THAT(checked(good()), is_ok());
}

TEST(CompleteParamsTest, DefaultsAreFilledInAndOrderIsTheSignatures) {
  const auto params =
      complete_params("Op", everything().params,
                      {{"groups", std::int64_t{3}}, {"shape", std::vector<std::int64_t>{8}}});
  ASSERT_THAT(params, is_ok());
  ASSERT_EQ(params->size(), 5u);
  EXPECT_EQ((*params)[0].name, "shape");
  EXPECT_EQ((*params)[1].value, FieldValue(1e-5));
  EXPECT_EQ((*params)[4].value, FieldValue(std::int64_t{3}));
  EXPECT_EQ(find_param(*params, "mode"), &(*params)[3].value);
  EXPECT_EQ(find_param(*params, "none"), nullptr);
}

TEST(CompleteParamsTest, AnIntegerIsTakenForANumberAndNothingElseIsConverted) {
  const std::vector<std::int64_t> shape{1};
  const auto with = [&](const char* name, FieldValue value) {
    return complete_params("Op", everything().params, {{"shape", shape}, {name, std::move(value)}});
  };
  const auto number = with("eps", std::int64_t{2});
  ASSERT_THAT(number, is_ok());
  EXPECT_EQ(*find_param(*number, "eps"), FieldValue(2.0));
  EXPECT_THAT(
      with("groups", 1.0),
      status_is(kInvalid, AllOf(HasSubstr("groups"), HasSubstr("integer"), HasSubstr("got 1"))));
  EXPECT_THAT(with("groups", true), status_is(kInvalid, HasSubstr("got true")));
  EXPECT_THAT(with("causal", std::int64_t{1}), status_is(kInvalid, HasSubstr("boolean")));
  EXPECT_THAT(with("mode", shape), status_is(kInvalid, HasSubstr("got [1]")));
  EXPECT_THAT(with("eps", std::string("small")), status_is(kInvalid, HasSubstr("got small")));
}

TEST(CompleteParamsTest, UnknownMissingAndRepeatedAreRefusedByName) {
  EXPECT_THAT(complete_params("Op", everything().params, {}),
              status_is(kInvalid, HasSubstr("Op: parameter shape")));
  EXPECT_THAT(
      complete_params("Op", everything().params, {{"epsilon", 1.0}}),
      status_is(kInvalid, AllOf(HasSubstr("shape, eps, causal"), HasSubstr("got epsilon"))));
  EXPECT_THAT(complete_params("Op", everything().params, {{"eps", 1.0}, {"eps", 2.0}}),
              status_is(kInvalid, HasSubstr("once")));
  EXPECT_THAT(complete_params("Op", {}, {{"eps", 1.0}}),
              status_is(kInvalid, HasSubstr("want none")));
}

TEST(CheckCallTest, EveryFaultNamesOpTensorWantAndGot) {
  struct Case {
    const char* what;
    void (*spoil)(CallArgs&);
    const char* message;
  };
  const Case cases[] = {
      {"dtype",
       [](CallArgs& a) {
         a.inputs[0] = arg(DType::float64, {2, 3, 4});
       },
       "EverythingOp: x must have a dtype that is served: want float16 or bfloat16, got float64"},
      {"dtype_of", [](CallArgs& a) { a.inputs[1] = arg(DType::bfloat16, {4}); },
       "EverythingOp: weight must have the dtype of x: want float16, got bfloat16"},
      {"rank", [](CallArgs& a) { a.inputs[0] = arg(DType::float16, {}); },
       "EverythingOp: x must have the shape [*B, *@shape]: want [*B, 4], got []"},
      {"extent", [](CallArgs& a) { a.inputs[1] = arg(DType::float16, {5}); },
       "EverythingOp: weight must have the shape [*@shape]: want [4], got [5]"},
      {"list",
       [](CallArgs& a) {
         a.inputs[2] = arg(DType::float32, {3, 2, 2});
       },
       "EverythingOp: state must have the shape [*B, 2]: want [2, 3, 2], got [3, 2, 2]"},
      {"absent", [](CallArgs& a) { a.inputs[0].reset(); },
       "EverythingOp: x must be passed: want a tensor, got none"},
      {"absent output", [](CallArgs& a) { a.outputs[0].reset(); },
       "EverythingOp: y must be passed"},
      {"device", [](CallArgs& a) { a.inputs[1] = arg(DType::float16, {4}, kCuda1); },
       "EverythingOp: weight must be on the device of x: want cuda:0, got cuda:1"},
      {"output's device",
       [](CallArgs& a) {
         a.outputs[0] = arg(DType::float16, {2, 3, 4}, kHost);
       },
       "EverythingOp: y must be on the device of x: want cuda:0, got cpu:0"},
      {"host", [](CallArgs& a) { a.inputs[3] = arg(DType::int32, {5}); },
       "EverythingOp: lengths must be on the host: want cpu:0, got cuda:0"},
      {"number of inputs", [](CallArgs& a) { a.inputs.pop_back(); },
       "EverythingOp: the number of inputs must be the signature's: want 4, got 3"},
      {"number of outputs", [](CallArgs& a) { a.outputs.clear(); }, "want 2, got 0"},
      {"negative", [](CallArgs& a) { a.inputs[3]->spec.shape = {-5}; },
       "lengths: shape: extents must not be negative: got [-5]"},
      {"strides' rank",
       [](CallArgs& a) {
         a.inputs[0]->strides = {4, 1};
       },
       "EverythingOp: x must have as many strides as dimensions: want 3, got [4, 1]"},
      {"output not contiguous",
       [](CallArgs& a) {
         a.outputs[0]->strides = {24, 8, 1};
       },
       "EverythingOp: y must be contiguous, as it is written: want strides [12, 4, 1], got [24, 8, "
       "1]"},
      {"overlap",
       [](CallArgs& a) {
         a.inputs[2]->strides = {0, 2, 1};
       },
       "EverythingOp: state must not overlap itself, as it is written"},
      {"unaligned elements", [](CallArgs& a) { a.inputs[2]->alignment = 2; },
       "EverythingOp: state must be aligned to its elements: want a multiple of 4 bytes, got one "
       "of 2"},
      {"no alignment", [](CallArgs& a) { a.inputs[2]->alignment = 12; },
       "want 1, 2, 4, 8 or 16, got 12"},
  };
  for (const Case& c : cases) {
    CallArgs args = good();
    c.spoil(args);
    EXPECT_THAT(checked(args), status_is(kInvalid, HasSubstr(c.message))) << c.what;
  }
}

TEST(CheckCallTest, WhatIsOptionalMayBeAbsent) {
  CallArgs args = good();
  args.inputs[1].reset();
  args.outputs[1].reset();
  EXPECT_THAT(checked(args), is_ok());
}

TEST(CheckCallTest, InputsThatAreOnlyReadMayHaveAnyStrides) {
  CallArgs args = good();
  for (const Dims& strides :
       {Dims({0, 0, 0}), Dims({-12, 4, 1}), Dims({1, 2, 100}), Dims({1000, 8, 2})}) {
    args.inputs[0]->strides = strides;
    EXPECT_THAT(checked(args), is_ok()) << to_string(strides);
  }
  args.inputs[1]->strides = {3};  // declared contiguous, but only read: the op layer copies it
  EXPECT_THAT(checked(args), is_ok());
}

TEST(CheckCallTest, WrittenTensorsMayBePaddedTransposedReversedAndOverlapNever) {
  CallArgs args = good();
  for (const Dims& strides :
       {Dims({6, 2, 1}), Dims({16, 4, 1}), Dims({1, 2, 6}), Dims({-6, 2, 1}), Dims({7, 2, 1})}) {
    args.inputs[2]->strides = strides;
    EXPECT_THAT(checked(args), is_ok()) << to_string(strides);
  }
  for (const Dims& strides : {Dims({6, 2, 0}), Dims({5, 2, 1}), Dims({6, 1, 1}), Dims({2, 2, 1})}) {
    args.inputs[2]->strides = strides;
    EXPECT_THAT(checked(args), status_is(kInvalid, HasSubstr("overlap"))) << to_string(strides);
  }
}

TEST(CheckCallTest, EmptyTensorsPassWhateverTheirStrides) {
  CallArgs args = good();
  args.inputs[0] = arg(DType::float16, {0, 3, 4});
  args.inputs[2] = arg(DType::float32, {0, 3, 2});
  args.inputs[2]->strides = {0, 0, 0};
  args.inputs[2]->alignment = 1;
  args.outputs[0] = arg(DType::float16, {0, 3, 4});
  args.outputs[0]->strides = {5, 5, 5};
  EXPECT_THAT(checked(args), is_ok());
}

TEST(CheckCallTest, LargeTensorsAreFineUntilTheirBytesCannotBeCounted) {
  const std::int64_t large = std::int64_t{1} << 40;
  CallArgs args = good();
  args.inputs[0] = arg(DType::float16, {large, 4});
  args.inputs[2] = arg(DType::float32, {large, 2});
  args.outputs[0] = arg(DType::float16, {large, 4});
  EXPECT_THAT(checked(args), is_ok());
  args.inputs[0] = arg(DType::float16, {std::int64_t{1} << 62, 4});
  EXPECT_THAT(checked(args), status_is(kInvalid, HasSubstr("below 2^63")));
  args.inputs[0] = arg(DType::float16, {std::int64_t{1} << 60, 4});
  EXPECT_THAT(checked(args), status_is(kInvalid, HasSubstr("less than 2^63 bytes")));
  for (const std::int64_t stride :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    args = good();
    args.inputs[0]->strides = {stride, 4, 1};
    EXPECT_THAT(checked(args), status_is(kInvalid, HasSubstr("less than 2^63 bytes"))) << stride;
  }
}

TEST(InferOutputsTest, ShapesDtypesAndDevicesFollowFromTheInputs) {
  CallArgs args = good();
  for (auto& input : args.inputs) {
    if (input->spec.device == kCuda) input->spec.device = kCuda1;
  }
  const auto outputs = infer_outputs(everything(), kParams, args.inputs);
  ASSERT_THAT(outputs, is_ok());
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0], (TensorSpec{kCuda1, DType::float16, {2, 3, 4}}));
  EXPECT_EQ((*outputs)[1], (TensorSpec{kCuda1, DType::int64, {5}}));
}

TEST(InferOutputsTest, InputsAreChecked) {
  CallArgs args = good();
  args.inputs[3].reset();
  EXPECT_THAT(infer_outputs(everything(), kParams, args.inputs),
              status_is(kInvalid, HasSubstr("lengths must be passed")));
}

TEST(InferOutputsTest, OutputsTooLargeAreRefused) {
  Signature s;
  s.op = "OuterOp";
  s.inputs = {{.name = "a", .dtypes = {DType::int8}, .shape = "N"},
              {.name = "b", .dtypes = {DType::int8}, .shape = "M"}};
  s.outputs = {{.name = "y", .dtypes = {DType::int8}, .shape = "N,M"}};
  ASSERT_THAT(check_signature(s), is_ok());
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THAT(infer_outputs(s, {}, {arg(DType::int8, {large}), arg(DType::int8, {large})}),
              status_is(kInvalid, AllOf(HasSubstr("OuterOp: y"), HasSubstr("2^63"))));
}

TEST(CheckSignatureTest, EveryFaultIsNamed) {
  struct Case {
    const char* message;
    void (*spoil)(Signature&);
  };
  const Case cases[] = {
      {"op must have a name", [](Signature& s) { s.op.clear(); }},
      {"names must be given once: got \"x\"", [](Signature& s) { s.outputs[0].name = "x"; }},
      {"names must be given once: got \"eps\"",
       [](Signature& s) {
         s.execution_params = {{"eps", ParamType::number, {}}};
       }},
      {"must have a name", [](Signature& s) { s.inputs[1].name.clear(); }},
      {"tolerance_steps must be positive", [](Signature& s) { s.tolerance_steps = 0; }},
      {"parameter eps must be of type number: got big",
       [](Signature& s) { s.params[1].default_value = std::string("big"); }},
      {"shape pattern", [](Signature& s) { s.inputs[0].shape = "*B,,C"; }},
      {"must have dtypes or dtype_of", [](Signature& s) { s.inputs[0].dtypes.clear(); }},
      {"either dtypes or dtype_of", [](Signature& s) { s.inputs[1].dtypes = {DType::float16}; }},
      {"dtype_of must name an input", [](Signature& s) { s.inputs[1].dtype_of = "z"; }},
      {"dtype_of must name an input", [](Signature& s) { s.outputs[0].dtype_of = "weight"; }},
      {"an output must have dtype_of or one dtype",
       [](Signature& s) {
         s.outputs[1].dtypes = {DType::int8, DType::int16};
       }},
      {"must name a parameter of type integers: got \"eps\"",
       [](Signature& s) { s.inputs[0].shape = "*@eps"; }},
      {"must name a parameter of type integer: got \"nothing\"",
       [](Signature& s) { s.inputs[0].shape = "@nothing"; }},
      {"one list of unknown length", [](Signature& s) { s.inputs[0].shape = "*B, *C"; }},
      {"not both: got \"B\"", [](Signature& s) { s.inputs[3].shape = "B"; }},
      {"must follow from inputs that are always passed: got \"Z\"",
       [](Signature& s) { s.outputs[0].shape = "Z"; }},
      {"must follow from inputs that are always passed: got \"shape\"",
       [](Signature& s) { s.outputs[0].shape = "shape"; }},
      {"must follow from inputs that are always passed",
       [](Signature& s) { s.inputs[3].optional = true; }},
  };
  for (const Case& c : cases) {
    Signature signature = everything();
    c.spoil(signature);
    EXPECT_THAT(check_signature(signature), status_is(kInvalid, HasSubstr(c.message))) << c.message;
  }
}

TEST(SignatureTest, ParameterTypesHaveNames) {
  EXPECT_EQ(to_string(ParamType::integers), "integers");
  EXPECT_EQ(to_string(ParamType::text), "text");
}

}  // namespace
}  // namespace kiln
