// Ops under graph capture: hits are recorded and replay right, a miss is an error and the capture
// goes on.
#include <kiln/kiln.h>
#include <kiln/ops/layer_norm.h>

#include "tests/gpu/capture_fixture.h"
#include "tests/support/temp_dir.h"

#include <cmath>

namespace kiln {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::status_is;

constexpr std::int64_t kRows = 4, kRow = 256;

class OpCaptureTest : public CudaCaptureTest {
 protected:
  void SetUp() override {
    CudaCaptureTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    RuntimeOptions options;
    options.cache_dir = folder_.path();
    runtime_ = std::make_unique<Runtime>(options);
    OpOptions op_options;
    op_options.runtime = runtime_.get();
    auto op = LayerNormFwdOp::create({.normalized_shape = {kRow}}, op_options);
    ASSERT_THAT(op, is_ok());
    op_ = *std::move(op);
    x_ = OwnedTensor::allocate(*support_, recorded_, DType::float32, {kRows, kRow}).value();
    y_ = OwnedTensor::allocate(*support_, recorded_, DType::float32, {kRows, kRow}).value();
    set_input(1);
  }
  void TearDown() override {
    x_ = OwnedTensor();  // before the stream that frees them
    y_ = OwnedTensor();
    CudaCaptureTest::TearDown();
  }
  // Every row alternates between +value and -value, whose LayerNorm is +1 and -1 times value /
  // sqrt(value^2 + eps).
  void set_input(float value) {
    std::vector<float> host(kRows * kRow);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = i % 2 == 0 ? value : -value;
    ASSERT_THAT(support_->copy_to_device(recorded_, x_.tensor().data, host.data(), bytes()),
                is_ok());
    ASSERT_THAT(support_->synchronize(recorded_), is_ok());
  }
  void expect_output(float value) {
    std::vector<float> host(kRows * kRow);
    ASSERT_THAT(support_->copy_to_host(recorded_, host.data(), y_.tensor().data, bytes()), is_ok());
    ASSERT_THAT(support_->synchronize(recorded_), is_ok());
    const float want = value / std::sqrt(value * value + 1e-5F);
    for (std::size_t i = 0; i < host.size(); ++i) {
      ASSERT_NEAR(host[i], i % 2 == 0 ? want : -want, 1e-5) << i;
    }
  }
  absl::Status call() {
    return op_->forward(recorded_, x_.tensor(), nullptr, nullptr, y_.tensor());
  }
  static std::size_t bytes() { return kRows * kRow * sizeof(float); }

  testing::TempDir folder_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<LayerNormFwdOp> op_;
  OwnedTensor x_, y_;
};

TEST_F(OpCaptureTest, AHitIsRecordedAndReplaysOnNewInputs) {
  ASSERT_THAT(call(), is_ok());
  begin();
  EXPECT_THAT(call(), is_ok());
  ASSERT_THAT(instantiate(), is_ok());
  for (const float value : {0.5F, 3.0F, 1e-3F}) {
    set_input(value);
    replay(1);
    expect_output(value);
  }
  drop_graph();
  EXPECT_EQ(runtime_->stats().compilations, 1);
}

TEST_F(OpCaptureTest, AMissIsAnErrorAndTheCaptureGoesOn) {
  int* data = make_int(0);
  begin();
  EXPECT_THAT(call(),
              status_is(absl::StatusCode::kFailedPrecondition, HasSubstr("is being captured")));
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  end_and_run(2);
  EXPECT_EQ(read_int(data), 2);
  EXPECT_EQ(runtime_->stats().compilations, 0);
  EXPECT_THAT(call(), is_ok()) << "after the capture the call is built as ever";
  expect_output(1);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

// Rows so long that clusters take them from a queue, which is scratch memory.
class ScratchCaptureTest : public OpCaptureTest {
 protected:
  static constexpr std::int64_t kLong = 65536, kMany = 200;
  struct Call {
    OwnedTensor x, y;
    CUgraphExec exec = nullptr;
  };
  void SetUp() override {
    OpCaptureTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    OpOptions options;
    options.runtime = runtime_.get();
    long_op_ = LayerNormFwdOp::create({.normalized_shape = {kLong}}, options).value();
    other_ = *support_->create_stream(0);
  }
  void TearDown() override {
    if (other_.handle != nullptr) {
      EXPECT_THAT(support_->destroy_stream(other_), is_ok());
    }
    OpCaptureTest::TearDown();
  }
  Call make_call(float value) {
    Call call;
    call.x = OwnedTensor::allocate(*support_, recorded_, DType::float32, {kMany, kLong}).value();
    call.y = OwnedTensor::allocate(*support_, recorded_, DType::float32, {kMany, kLong}).value();
    std::vector<float> host(kMany * kLong);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = i % 2 == 0 ? value : -value;
    EXPECT_THAT(
        support_->copy_to_device(recorded_, call.x.tensor().data, host.data(), host.size() * 4),
        is_ok());
    EXPECT_THAT(support_->synchronize(recorded_), is_ok());
    clear(call);
    return call;
  }
  void clear(const Call& call) {
    EXPECT_THAT(support_->fill(recorded_, call.y.tensor().data, 0, kMany * kLong * 4), is_ok());
    EXPECT_THAT(support_->synchronize(recorded_), is_ok());
  }
  absl::Status run(const Call& call, const Stream& stream) {
    return long_op_->forward(stream, call.x.tensor(), nullptr, nullptr, call.y.tensor());
  }
  void capture(Call& call) {
    begin();
    EXPECT_THAT(run(call, recorded_), is_ok());
    ASSERT_THAT(instantiate(), is_ok());
    std::swap(call.exec, exec_);
  }
  void launch(const Call& call, const Stream& stream) {
    ASSERT_EQ(FIND_CUDA_FUNCTION(*driver_, cuGraphLaunch, 10000)(
                  call.exec, static_cast<CUstream>(stream.handle)),
              CUDA_SUCCESS);
  }
  void drop(Call& call) {
    std::swap(call.exec, exec_);
    drop_graph();
  }
  void expect_all(const Call& call, float value) {
    std::vector<float> host(kMany * kLong);
    ASSERT_THAT(
        support_->copy_to_host(recorded_, host.data(), call.y.tensor().data, host.size() * 4),
        is_ok());
    ASSERT_THAT(support_->synchronize(recorded_), is_ok());
    const float want = value / std::sqrt(value * value + 1e-5F);
    for (std::size_t i = 0; i < host.size(); ++i)
      ASSERT_NEAR(host[i], i % 2 == 0 ? want : -want, 1e-5) << i;
  }

  std::unique_ptr<LayerNormFwdOp> long_op_;
  Stream other_{};
};

TEST_F(ScratchCaptureTest, WhatACaptureGetsIsThereForItAndCallsAfterwardsGetTheirOwn) {
  Call call = make_call(2);
  ASSERT_THAT(run(call, other_), is_ok());  // built, and no scratch memory on the captured stream
  ASSERT_THAT(support_->synchronize(other_), is_ok());
  clear(call);
  capture(call);
  launch(call, recorded_);
  expect_all(call, 2);
  for (int i = 0; i < 2; ++i) {
    clear(call);
    ASSERT_THAT(run(call, recorded_), is_ok());
    expect_all(call, 2);
    clear(call);
    launch(call, recorded_);
    expect_all(call, 2);
  }
  drop(call);
  ASSERT_THAT(run(call, recorded_), is_ok());
  expect_all(call, 2);
}

TEST_F(ScratchCaptureTest, GraphsOfOneStreamReplayBesideEachOtherAndBesideCalls) {
  Call first = make_call(2), second = make_call(3), third = make_call(4);
  ASSERT_THAT(run(first, recorded_), is_ok());
  ASSERT_THAT(support_->synchronize(recorded_), is_ok());
  capture(first);
  capture(second);
  const Stream beside = *support_->create_stream(0);
  for (int i = 0; i < 20; ++i) {
    for (const Call* call : {&first, &second, &third}) clear(*call);
    launch(first, other_);
    launch(second, beside);
    ASSERT_THAT(run(third, recorded_), is_ok());
    for (const Stream& stream : {other_, beside, recorded_})
      ASSERT_THAT(support_->synchronize(stream), is_ok());
  }
  expect_all(first, 2);
  expect_all(second, 3);
  expect_all(third, 4);
  drop(first);
  drop(second);
  EXPECT_THAT(support_->destroy_stream(beside), is_ok());
}

}  // namespace
}  // namespace kiln
