// One process, two GPUs of one arch: one artifact and two loads, and the caller's thread stays as
// it was.
#include <kiln/kiln.h>
#include <kiln/ops/layer_norm.h>

#include "tests/gpu/cuda_fixture.h"
#include "tests/support/temp_dir.h"

#include <thread>

namespace kiln {
namespace {

using testing::is_ok;

class TwoDevicesTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (support_->device_count().value() < 2) GTEST_SKIP() << "one device; two are needed";
    if (support_->facts(1)->arch != facts_.arch) GTEST_SKIP() << "the two devices differ in arch";
    RuntimeOptions options;
    options.cache_dir = folder_.path();
    runtime_ = std::make_unique<Runtime>(options);
    OpOptions op_options;
    op_options.runtime = runtime_.get();
    auto op = LayerNormFwdOp::create({.normalized_shape = {kRow}}, op_options);
    ASSERT_THAT(op, is_ok());
    op_ = *std::move(op);
  }
  // A row of +1 and -1 comes out as it went in, but for eps. The first value that came out.
  absl::StatusOr<float> run(int device) {
    KILN_ASSIGN_OR_RETURN(const Stream stream, support_->create_stream(device));
    std::vector<float> host(kRow);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = i % 2 == 0 ? 1.0F : -1.0F;
    {
      KILN_ASSIGN_OR_RETURN(const OwnedTensor x,
                            OwnedTensor::allocate(*support_, stream, DType::float32, {1, kRow}));
      KILN_ASSIGN_OR_RETURN(const OwnedTensor y,
                            OwnedTensor::allocate(*support_, stream, DType::float32, {1, kRow}));
      const std::size_t bytes = kRow * sizeof(float);
      KILN_RETURN_IF_ERROR(support_->copy_to_device(stream, x.tensor().data, host.data(), bytes));
      KILN_RETURN_IF_ERROR(op_->forward(stream, x.tensor(), nullptr, nullptr, y.tensor()));
      KILN_RETURN_IF_ERROR(support_->copy_to_host(stream, host.data(), y.tensor().data, bytes));
      KILN_RETURN_IF_ERROR(support_->synchronize(stream));
    }
    KILN_RETURN_IF_ERROR(support_->destroy_stream(stream));
    return host[0];
  }

  static constexpr std::int64_t kRow = 1024;
  testing::TempDir folder_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<LayerNormFwdOp> op_;
};

TEST_F(TwoDevicesTest, OneArtifactTwoLoads) {
  CUcontext before = nullptr, after = nullptr;
  ASSERT_EQ(FIND_CUDA_FUNCTION(*driver_, cuCtxGetCurrent, 4000)(&before), CUDA_SUCCESS);
  for (const int device : {1, 0, 1}) {
    const absl::StatusOr<float> first = run(device);
    ASSERT_THAT(first, is_ok()) << device;
    EXPECT_NEAR(*first, 1, 1e-5) << device;
  }
  ASSERT_EQ(FIND_CUDA_FUNCTION(*driver_, cuCtxGetCurrent, 4000)(&after), CUDA_SUCCESS);
  EXPECT_EQ(before, after);
  EXPECT_EQ(runtime_->stats().compilations, 1);
  EXPECT_EQ(runtime_->stats().loads, 2);
}

TEST_F(TwoDevicesTest, ThreadsOnBothAtOnceCompileOnce) {
  std::vector<std::thread> threads;
  std::vector<absl::StatusOr<float>> results(8, absl::UnknownError("not run"));
  for (int i = 0; i < 8; ++i) threads.emplace_back([&, i] { results[i] = run(i % 2); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    ASSERT_THAT(result, is_ok());
    EXPECT_NEAR(*result, 1, 1e-5);
  }
  EXPECT_EQ(runtime_->stats().compilations, 1);
  EXPECT_EQ(runtime_->stats().loads, 2);
}

}  // namespace
}  // namespace kiln
