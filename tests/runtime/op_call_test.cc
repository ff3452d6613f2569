// Whole calls of an op: what is checked, looked up, kept and run.
#include "tests/runtime/dispatch_fixture.h"

#include <gmock/gmock.h>

#include <atomic>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using enum absl::StatusCode;

class OpCallTest : public DispatchTest {
 protected:
  Tensor tensor(std::vector<float>& data, int index = 0) {
    return Tensor::contiguous(data.data(), {DeviceType::cpu(), static_cast<std::uint8_t>(index)},
                              DType::float32, {static_cast<std::int64_t>(data.size())});
  }
  std::vector<float> x = {1, 2, 3}, y = {0, 0, 0};
};

TEST_F(OpCallTest, ACallWithKnownTensorsIsOneLookup) {
  ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  EXPECT_THAT(y, ElementsAre(2, 3, 4));
  const auto selections = toy.runtime.stats().selections;
  const int asked = refusals_asked;
  for (int i = 0; i < 100; ++i)
    ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  EXPECT_EQ(toy.runtime.stats().selections, selections);
  EXPECT_EQ(refusals_asked, asked);
  EXPECT_EQ(op->serving_target(), "builtin");
}

TEST_F(OpCallTest, BadTensorsAreRefusedWithTheValueAlsoWhenTheGoodOnesAreKnown) {
  ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  Tensor bad = tensor(x);
  bad.dtype = DType::float16;
  EXPECT_THAT(op->forward(toy_stream(), bad, tensor(y)),
              status_is(kInvalidArgument, HasSubstr("float16")));
  bad = tensor(x);
  bad.data = nullptr;
  EXPECT_THAT(op->forward(toy_stream(), bad, tensor(y)),
              status_is(kInvalidArgument, HasSubstr("null pointer")));
  EXPECT_THAT(op->forward(toy_stream(), tensor(x, 1), tensor(y)),
              status_is(kInvalidArgument, HasSubstr("cpu:1")));
  EXPECT_THAT(op->forward(toy_stream(1), tensor(x), tensor(y)),
              status_is(kInvalidArgument, HasSubstr("cpu:1")));
  bad = tensor(x);
  bad.shape = {3, 1};
  bad.strides = {1, 1};
  EXPECT_THAT(op->forward(toy_stream(), bad, tensor(y)),
              status_is(kInvalidArgument, HasSubstr("[3, 1]")));
  const Tensor good = tensor(x);
  const Tensor* one[] = {&good};
  EXPECT_THAT(op->call(toy_stream(), one, one),
              status_is(kInvalidArgument, HasSubstr("got 1 and 1")));
}

TEST_F(OpCallTest, AnEmptyCallPassesTheChecksRunsNothingAndSettlesNothing) {
  std::vector<float> none;
  EXPECT_THAT(op->forward(toy_stream(), tensor(none), tensor(none)), is_ok());
  EXPECT_EQ(op->serving_target(), std::nullopt);
  EXPECT_EQ(built, 0);
  Tensor wrong = tensor(none);
  wrong.dtype = DType::int8;
  EXPECT_THAT(op->forward(toy_stream(), wrong, tensor(none)),
              status_is(kInvalidArgument, HasSubstr("int8")));
}

TEST_F(OpCallTest, TheLastCallIsKeptOnlyWhenAskedForAndAFailedOneDoesNotReplaceIt) {
  ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  EXPECT_EQ(op->last_call(), std::nullopt);
  auto recording = toy.op(OpOptions{.record_calls = true});
  ASSERT_THAT(recording, is_ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT((*recording)->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
    ASSERT_TRUE((*recording)->last_call());
    EXPECT_THAT((*recording)->last_call()->keys, ElementsAre("toy_short"));
  }
  Tensor bad = tensor(x);
  bad.data = nullptr;
  EXPECT_THAT((*recording)->forward(toy_stream(), bad, tensor(y)), Not(is_ok()));
  EXPECT_THAT((*recording)->last_call()->keys, ElementsAre("toy_short"));
  EXPECT_EQ((*recording)->roofline()->bytes, 24);
}

TEST_F(OpCallTest, AMissDuringCaptureIsAnErrorAndAHitIsNot) {
  toy.support->capturing = true;
  EXPECT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)),
              status_is(kFailedPrecondition, AllOf(HasSubstr("captured"), HasSubstr("warm"))));
  toy.support->capturing = false;
  ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  toy.support->capturing = true;
  EXPECT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
}

class ToyThrowing final : public ToyKernel {
 public:
  explicit ToyThrowing(const ToyCall&) {}
  absl::Status forward(const Stream&, const Tensor&, const Tensor&) const override {
    if (throws) throw 42;  // not even a std::exception
    return absl::OkStatus();
  }
  static inline std::atomic<bool> throws{false};
};

TEST_F(OpCallTest, AKernelThatThrowsFailsTheCallAlsoOnAHit) {
  ToyRuntime other;
  ASSERT_THAT(other.add<ToyThrowing>("toy_throwing"), is_ok());
  auto throwing = other.op();
  ASSERT_THAT(throwing, is_ok());
  ToyThrowing::throws = true;
  EXPECT_THAT((*throwing)->forward(toy_stream(), tensor(x), tensor(y)),
              status_is(kInternal, HasSubstr("ToyFwdOp")));
  EXPECT_EQ((*throwing)->serving_target(), std::nullopt);
  ToyThrowing::throws = false;
  EXPECT_THAT((*throwing)->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  ToyThrowing::throws = true;
  EXPECT_THAT((*throwing)->forward(toy_stream(), tensor(x), tensor(y)), status_is(kInternal));
}

TEST_F(OpCallTest, TheAllocatingFormMakesItsOutputs) {
  const Tensor in = tensor(x);
  const Tensor* inputs[] = {&in, nullptr};
  auto outputs = op->call_allocating(toy_stream(), inputs);
  ASSERT_THAT(outputs, is_ok());
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ(static_cast<const float*>((*outputs)[0].tensor().data)[2], 4);
}

}  // namespace
}  // namespace kiln::testing
