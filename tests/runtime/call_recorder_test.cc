// Calls of a process are written to a file once each, for `kiln warm`.
#include "runtime/call_recorder.h"

#include "runtime/call_json.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlainKernel : public ToyKernel {
 public:
  static Refusal refusal(const ToyCall& call) {
    if (call.n > 100) return refuse("serves lengths of at most 100, got ", call.n);
    return serves;
  }
  static Entry<PlainKernel> entry_for(const ToyCall& call) {
    return Entry<PlainKernel>(call.dtype);
  }
  explicit PlainKernel(DType) {}
};

class CallRecorderTest : public ::testing::Test {
 protected:
  RuntimeOptions options() {
    RuntimeOptions options;
    options.record_calls_file = dir_ / "calls.jsonl";
    return options;
  }
  // A call on `device` of `n` elements.
  absl::Status call(Op& op, std::int64_t n, int device = 0) {
    std::vector<float> x(static_cast<std::size_t>(n)), y(x.size());
    const Stream stream = toy_stream(device);
    const Tensor in = Tensor::contiguous(x.data(), stream.device, DType::float32, {n});
    const Tensor out = Tensor::contiguous(y.data(), stream.device, DType::float32, {n});
    const Tensor* inputs[] = {&in, nullptr};
    const Tensor* outputs[] = {&out};
    return op.call(stream, inputs, outputs);
  }
  // What was recorded, read back as `kiln warm` does: the lengths of x.
  std::vector<std::int64_t> lengths(ToyRuntime& toy) {
    const std::string text = read_file(dir_ / "calls.jsonl");
    if (text.empty()) return {};
    const auto calls = internal::parse_calls(text, "calls.jsonl", [&](std::string_view op) {
      return absl::StatusOr<const Signature*>(&(*toy.runtime.op_type(op))->signature);
    });
    EXPECT_THAT(calls, is_ok());
    std::vector<std::int64_t> out;
    for (const internal::CallLine& line : *calls)
      out.push_back(line.call.args.inputs[0]->spec.shape[0]);
    std::sort(out.begin(), out.end());
    return out;
  }
  TempDir dir_;
};

TEST_F(CallRecorderTest, EachDistinctCallIsWrittenOnceAndReadsBack) {
  ToyRuntime toy(options());
  ASSERT_THAT(toy.add<PlainKernel>("plain"), is_ok());
  const auto op = toy.op();
  for (std::int64_t n : {4, 8, 4, 8, 4}) EXPECT_THAT(call(**op, n), is_ok());
  EXPECT_THAT(call(**op, 4, /*device=*/1), is_ok());  // the same call on another card
  EXPECT_THAT(lengths(toy), ElementsAre(4, 8));
  EXPECT_EQ(toy.runtime.stats().calls_recorded, 2);
  const auto other = toy.op();
  EXPECT_THAT(call(**other, 8), is_ok());  // another instance
  EXPECT_EQ(toy.runtime.stats().calls_recorded, 2);
  EXPECT_THAT(read_file(dir_ / "calls.jsonl"), HasSubstr("\"device\":\"cpu:0\""));
}

TEST_F(CallRecorderTest, WithoutAFileNothingIsWritten) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<PlainKernel>("plain"), is_ok());
  EXPECT_THAT(call(**toy.op(), 4), is_ok());
  EXPECT_EQ(toy.runtime.stats().calls_recorded, 0);
  EXPECT_THAT(files_below(dir_.path()), IsEmpty());
}

TEST_F(CallRecorderTest, ACallThatTheMachineCannotRunIsRecordedAndOneThatNobodyServesIsNot) {
  ToyRuntime toy(options(), /*cards=*/{});  // as on a machine without a device
  ASSERT_THAT(toy.add<PlainKernel>("plain"), is_ok());
  const auto op = toy.op();
  EXPECT_THAT(call(**op, 4), status_is(absl::StatusCode::kNotFound));
  EXPECT_THAT(lengths(toy), ElementsAre(4));
  ToyRuntime with_cards(options());
  ASSERT_THAT(with_cards.add<PlainKernel>("plain"), is_ok());
  EXPECT_THAT(call(**with_cards.op(), 200), status_is(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(lengths(toy), ElementsAre(4));
}

TEST_F(CallRecorderTest, ThreadsAndTwoRuntimesShareTheFile) {
  ToyRuntime one(options()), two(options());
  ASSERT_THAT(one.add<PlainKernel>("plain"), is_ok());
  ASSERT_THAT(two.add<PlainKernel>("plain"), is_ok());
  const auto op_of_one = one.op(), op_of_two = two.op();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t n = 1; n <= 20; ++n)
        EXPECT_THAT(call(t % 2 == 0 ? **op_of_one : **op_of_two, n), is_ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::int64_t> found = lengths(one);
  ASSERT_EQ(found.size(), 20u);
  for (std::int64_t n = 1; n <= 20; ++n) EXPECT_EQ(found[static_cast<std::size_t>(n) - 1], n);
  EXPECT_EQ(one.runtime.stats().calls_recorded + two.runtime.stats().calls_recorded, 20);
}

TEST_F(CallRecorderTest, AFileThatCannotBeWrittenCostsNoCall) {
  RuntimeOptions bad = options();
  bad.record_calls_file = dir_ / "no/folder/calls.jsonl";
  ToyRuntime toy(bad);
  ASSERT_THAT(toy.add<PlainKernel>("plain"), is_ok());
  EXPECT_THAT(call(**toy.op(), 4), is_ok());
  EXPECT_EQ(toy.runtime.stats().calls_recorded, 0);
}

TEST_F(CallRecorderTest, ExecutionParametersMakeNoOtherCall) {
  Signature signature = ToyFwdOp::signature();
  signature.execution_params = {{"step", ParamType::integer, {}}};
  const auto recorder = internal::CallRecorder::open(dir_ / "calls.jsonl");
  internal::ParsedCall call{"ToyFwdOp", {{"gain", 1.0}},     {{"step", std::int64_t{1}}},
                            {},         toy_stream().device, {}};
  call.args.inputs = {contiguous_arg({toy_stream().device, DType::float32, {4}}), std::nullopt};
  call.args.outputs = {contiguous_arg({toy_stream().device, DType::float32, {4}})};
  recorder->record(call, signature);
  call.execution_params = {{"step", std::int64_t{2}}};
  recorder->record(call, signature);
  internal::CallRecorder::open(dir_ / "calls.jsonl")->record(call, signature);  // another process
  EXPECT_EQ(recorder->recorded(), 1);
  const std::string text = read_file(dir_ / "calls.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_THAT(text, HasSubstr("\"step\":1"));
}

}  // namespace
}  // namespace kiln::testing
