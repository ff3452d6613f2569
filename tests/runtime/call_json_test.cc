#include "runtime/call_json.h"

#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <map>

namespace kiln::internal {
namespace {

using ::kiln::testing::is_ok;
using ::kiln::testing::status_is;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

const Signature& norm_signature() {
  static const Signature signature = [] {
    Signature s;
    s.op = "NormOp";
    s.params = {{"shape", ParamType::integers, {}},
                {"eps", ParamType::number, 1e-5},
                {"mode", ParamType::text, std::string("plain")}};
    s.execution_params = {{"scale", ParamType::number, 1.0}};
    s.inputs = {{.name = "x",
                 .dtypes = {DType::float16, DType::float32},
                 .shape = "*B, *@shape",
                 .contiguous = false},
                {.name = "weight", .dtype_of = "x", .shape = "*@shape", .optional = true},
                {.name = "lengths",
                 .dtypes = {DType::int32},
                 .shape = "N",
                 .optional = true,
                 .host = true}};
    s.outputs = {{.name = "y", .dtype_of = "x", .shape = "*B, *@shape", .contiguous = false}};
    return s;
  }();
  return signature;
}

absl::StatusOr<const Signature*> find(std::string_view op) {
  if (op == "NormOp") return &norm_signature();
  return absl::NotFoundError("no op " + std::string(op) + "; there are: NormOp");
}

absl::StatusOr<ParsedCall> parse(std::string_view text, std::string_view op = "") {
  return parse_call(text, find, op);
}

constexpr char kCall[] =
    R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[2,8]}}})";

// A line of 200,000 fields, the last of which is there already.
TEST(CallJsonTest, ManyFieldsAreReadInLinearTime) {
  std::string text = "{\"op\":\"NormOp\"";
  for (int i = 0; i < 200000; ++i) text += ",\"f" + std::to_string(i) + "\":" + std::to_string(i);
  EXPECT_THAT(parse(text + "}"), status_is(kInvalid, HasSubstr("got \"f0\"")));
  EXPECT_THAT(parse(text + ",\"f7\":0}"), status_is(kInvalid, HasSubstr("got \"f7\" twice")));
}

TEST(CallJsonTest, ACallIsRead) {
  const auto call = parse(kCall);
  ASSERT_THAT(call, is_ok());
  EXPECT_EQ(call->op, "NormOp");
  EXPECT_EQ(*find_param(call->params, "eps"), FieldValue(1e-5));
  EXPECT_EQ(*find_param(call->execution_params, "scale"), FieldValue(1.0));
  ASSERT_EQ(call->args.inputs.size(), 3u);
  EXPECT_EQ(call->args.inputs[0], contiguous_arg({Device{}, DType::float16, {2, 8}}));
  EXPECT_FALSE(call->args.inputs[1].has_value());
  ASSERT_EQ(call->args.outputs.size(), 1u);
  EXPECT_EQ(call->args.outputs[0], contiguous_arg({Device{}, DType::float16, {2, 8}}));
  EXPECT_FALSE(call->device.has_value());
}

TEST(CallJsonTest, StridesAlignmentDeviceAndTagsAreRead) {
  const auto call = parse(
      R"({"op":"NormOp","device":"cpu","tags":["smoke"],"params":{"shape":[8]},
          "inputs":{"x":{"dtype":"float16","shape":[2,8],"strides":[16,1],"align":2},"weight":null,
                    "lengths":{"dtype":"int32","shape":[3]}},
          "outputs":{"y":{"dtype":"float16","shape":[2,8],"strides":[9,1],"align":4}}})");
  ASSERT_THAT(call, is_ok());
  EXPECT_EQ(call->args.inputs[0]->strides, Dims({16, 1}));
  EXPECT_EQ(call->args.inputs[0]->alignment, 2);
  EXPECT_EQ(call->args.inputs[0]->spec.device.type, DeviceType::cpu());
  EXPECT_EQ(call->args.outputs[0]->strides, Dims({9, 1}));
  EXPECT_EQ(call->args.outputs[0]->alignment, 4);
  EXPECT_EQ(call->tags, std::vector<std::string>{"smoke"});
  EXPECT_EQ(to_string(*call->device), "cpu:0");
}

TEST(CallJsonTest, HostTensorsStayOnTheHost) {
  const auto call = parse(
      R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[8]},"lengths":{"dtype":"int32","shape":[3]}}})");
  ASSERT_THAT(call, is_ok());
  EXPECT_EQ(call->args.inputs[2]->spec.device.type, DeviceType::cpu());
  const ParsedCall moved = on_device(*call, norm_signature(), Device{DeviceType::cuda(), 3});
  EXPECT_EQ(to_string(moved.args.inputs[0]->spec.device), "cuda:3");
  EXPECT_EQ(to_string(moved.args.outputs[0]->spec.device), "cuda:3");
  EXPECT_EQ(to_string(moved.args.inputs[2]->spec.device), "cpu:0");
}

TEST(CallJsonTest, TheOpMayBeGivenBesideTheObject) {
  EXPECT_THAT(
      parse(R"({"params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[8]}}})", "NormOp"),
      is_ok());
  EXPECT_THAT(parse(kCall, "NormOp"), is_ok());
  EXPECT_THAT(parse(kCall, "OtherOp"), status_is(kInvalid, HasSubstr("want OtherOp, got NormOp")));
}

TEST(CallJsonTest, EveryFaultNamesFieldAndValue) {
  const std::map<std::string, std::string> cases = {
      {"", "JSON: line 1, column 1"},
      {"{\"op\":\n  \"NormOp\",}", "JSON: line 2, column 12"},
      {"[1]", "call must be an object: got [1]"},
      {"{}", "\"op\" must name an op: got none"},
      {R"({"op":3})", "\"op\" must be the name of an op: got 3"},
      {R"({"op":"SoftmaxOp"})", "no op SoftmaxOp; there are: NormOp"},
      {R"({"op":"NormOp","op":"NormOp"})", "must be given once: got \"op\" twice"},
      {R"({"op":"NormOp","input":{}})", "got \"input\""},
      {R"({"op":"NormOp","params":{"shape":[8],"epsilon":1}})", "got epsilon"},
      {R"({"op":"NormOp","params":[8]})", "params must be an object: got [8]"},
      {R"({"op":"NormOp"})", "parameter shape must be given"},
      {R"({"op":"NormOp","params":{"shape":8}})", "shape must be of type integers: got 8"},
      {R"({"op":"NormOp","params":{"shape":[8.5]}})",
       "params.shape must be an integer below 2^63: got 8.5"},
      {R"({"op":"NormOp","params":{"shape":[9223372036854775808]}})", "got 9223372036854775808"},
      {R"({"op":"NormOp","params":{"shape":[8],"eps":null}})", "params.eps must be a number"},
      {R"({"op":"NormOp","params":{"shape":[8],"eps":{}}})", "got {}"},
      {R"({"op":"NormOp","params":{"shape":[8]}})", "x must be passed"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"z":{}}})",
       "want x, weight, lengths, got \"z\""},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":[2,8]}})",
       "inputs.x must be an object: got [2,8]"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"shape":[8]}}})",
       "\"dtype\" and \"shape\""},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"half","shape":[8]}}})",
       "inputs.x.dtype must be the name of a dtype, as \"float16\": got \"half\""},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"int8","shape":[8]}}})",
       "NormOp: x must have a dtype that is served: want float16 or float32, got int8"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[-8]}}})",
       "not negative: got [-8]"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":"8"}}})",
       "inputs.x.shape must be a list of integers: got \"8\""},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[1,1,1,1,1,1,1,1,8]}}})",
       "at most 8"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[2,9]}}})",
       "want [*B, 8], got [2, 9]"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[8],"align":3}}})",
       "inputs.x.align must be 1, 2, 4, 8 or 16: got 3"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[8],"align":32}}})",
       "got 32"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[2,8],"strides":[1]}}})",
       "must have as many strides"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[8],"data":1}}})",
       "got \"data\""},
      {R"({"op":"NormOp","device":7})", "device must be a text"},
      {R"({"op":"NormOp","device":"cuda:999"})", "cuda:999"},
      {R"({"op":"NormOp","tags":"smoke"})", "tags must be a list of words"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[8]}},"outputs":{"y":{"dtype":"float16","shape":[9]}}})",
       "y must have the shape"},
      {R"({"op":"NormOp","params":{"shape":[8]},"inputs":{"x":{"dtype":"float16","shape":[4611686018427387904,8]}}})",
       "below 2^63"},
      {R"({"op":"NormOp","params":{"shape":[8],"eps":1e999}})", "JSON"},
      {std::string(100000, '['), "JSON: line 1"},
      {"\xff\xfe", "JSON: line 1, column 1"},
      {"{\"op\":\"\xff\"}", "JSON"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(parse(text), status_is(kInvalid, HasSubstr(message))) << text.substr(0, 200);
  }
}

TEST(CallJsonTest, EveryCutOfACallIsRefused) {
  const std::string whole = kCall;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(parse(whole.substr(0, length)), status_is(kInvalid, HasSubstr("JSON: line 1")))
        << length;
  }
}

TEST(CallJsonTest, TheCanonicalFormIsStableAndReadsBack) {
  const auto call = parse(
      R"( { "inputs":{"lengths":{"shape":[3],"dtype":"int32"}, "x":{"shape":[2,8],"align":2,"dtype":"float16","strides":[16,1]}},
            "tags":["perf"], "device":"cuda:1", "execution_params":{"scale":2},
            "params":{"mode":"fast","shape":[8]}, "op":"NormOp", "outputs":{"y":{"dtype":"float16","shape":[2,8],"align":8}} })");
  ASSERT_THAT(call, is_ok());
  const std::string text = call_to_json(*call, norm_signature());
  EXPECT_EQ(
      text,
      R"({"op":"NormOp","params":{"shape":[8],"eps":1e-05,"mode":"fast"},"execution_params":{"scale":2.0},)"
      R"("inputs":{"x":{"dtype":"float16","shape":[2,8],"strides":[16,1],"align":2},"lengths":{"dtype":"int32","shape":[3]}},)"
      R"("outputs":{"y":{"dtype":"float16","shape":[2,8],"align":8}},"device":"cuda:1","tags":["perf"]})");
  const auto again = parse(text);
  ASSERT_THAT(again, is_ok());
  EXPECT_EQ(call_to_json(*again, norm_signature()), text);
  EXPECT_EQ(again->args.inputs, call->args.inputs);
  EXPECT_EQ(again->args.outputs, call->args.outputs);
}

TEST(CallJsonTest, AFileHoldsOneCallALine) {
  const std::string text =
      std::string("# calls of a test\n\n") + kCall + "\r\n   \n  # more\n" + kCall;
  const auto calls = parse_calls(text, "my calls.jsonl", find);
  ASSERT_THAT(calls, is_ok());
  ASSERT_EQ(calls->size(), 2u);
  EXPECT_EQ((*calls)[0].line, 3);
  EXPECT_EQ((*calls)[1].line, 6);
}

TEST(CallJsonTest, AFileNamesItsBadLine) {
  const std::string text = std::string(kCall) + "\n\n{\"op\":\"NormOp\",}\n";
  EXPECT_THAT(parse_calls(text, "calls.jsonl", find),
              status_is(kInvalid, AllOf(HasSubstr("calls.jsonl:3: "), HasSubstr("column 16"))));
  EXPECT_THAT(parse_calls("", "calls.jsonl", find),
              status_is(kInvalid, HasSubstr("calls.jsonl: must hold at least one call")));
  EXPECT_THAT(parse_calls("# none\n\n", "calls.jsonl", find),
              status_is(kInvalid, HasSubstr("got 2 lines")));
}

struct OneCall {
  std::int64_t n = 0;
  DType dtype = DType::float16;
  KILN_CALL_SPEC(OneCall, n, dtype)
};

TEST(CallJsonTest, CallSpecsFactsAndVerdictsAsJson) {
  EXPECT_EQ(dump(json_of(CallRef(OneCall{.n = 3, .where = stated(90)}))),
            R"({"n":3,"dtype":"float16","device":"cuda:0","arch":90})");
  EXPECT_EQ(dump(json_of(DeviceFacts{90, 132, 232448, "h200"})),
            R"({"arch":90,"sm_count":132,"smem_budget":232448,"calibration":"h200"})");
  Selection selection;
  selection.verdicts = {{"a", VerdictKind::refused, "too long", "in-tree"}};
  selection.error = with_kind(absl::UnimplementedError("none"), ErrorKind::op_not_available);
  const Json json = json_of(selection);
  EXPECT_TRUE(json["chosen"].is_null());
  EXPECT_EQ(json["error"], std::string(to_string(ErrorKind::op_not_available)));
  EXPECT_EQ(json["implementations"][0]["verdict"], "refused");
  EXPECT_EQ(kind_name(absl::DeadlineExceededError("")), "DeadlineExceeded");
}

TEST(CallJsonTest, BytesThatAreNoTextNeverThrow) { EXPECT_FALSE(dump(Json("\xff")).empty()); }

}  // namespace
}  // namespace kiln::internal
