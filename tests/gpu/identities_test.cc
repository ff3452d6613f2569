// Many distinct identities on a device: what is dropped is unloaded, nothing that still works is,
// and the device's memory stays bounded.
#include <kiln/kiln.h>

#include "tests/gpu/capture_fixture.h"
#include "tests/support/number_kernel.h"
#include "tests/support/temp_dir.h"

#include <future>

namespace kiln {
namespace {

using testing::is_ok;
using testing::ToyFwdOp;

// Four megabytes of device memory an image, so that images that stay are seen. It works for a
// while, so that it is at work when the call returns.
constexpr const char* kSource = R"(
__device__ unsigned char ballast[4 << 20];
extern "C" __global__ void number(float* y, int at) {
  const long long begin = clock64();
  while (clock64() - begin < 200000) {
  }
  ballast[at] = 1;
  y[0] = NUMBER + ballast[at + 1];
}
)";

class IdentitiesGpuTest : public CudaCaptureTest {
 protected:
  static constexpr std::int64_t kMost = 300;
  static constexpr std::int64_t kMegabyte = 1 << 20;

  void SetUp() override {
    CudaCaptureTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    RuntimeOptions options;
    options.cache_dir = folder_.path();
    options.max_entries = 16;
    auto runtime = testing::number_runtime</*on_host=*/false>(options, kSource);
    ASSERT_THAT(runtime, is_ok());
    runtime_ = *std::move(runtime);
    memory_ = OwnedTensor::allocate(*support_, stream_, DType::float32, {kMost}).value();
  }
  void TearDown() override {
    memory_ = OwnedTensor();
    CudaCaptureTest::TearDown();
  }
  std::unique_ptr<ToyFwdOp> make_op() {
    auto op = testing::toy_op_of(*runtime_);
    EXPECT_THAT(op, is_ok());
    return *std::move(op);
  }
  // Compiles identities [first, last] side by side.
  void compile(ToyFwdOp& op, std::int64_t first, std::int64_t last) {
    std::vector<std::shared_future<absl::Status>> all;
    for (std::int64_t n = first; n <= last; ++n) {
      const Device device{DeviceType::cuda(), 0};
      const ArgSpec spec = contiguous_arg({device, DType::float32, {n}});
      all.push_back(op.prefetch({{spec, std::nullopt}, {spec}}, device));
    }
    for (const auto& one : all) ASSERT_THAT(one.get(), is_ok());
  }
  void expect_number(ToyFwdOp& op, std::int64_t n) {
    Tensor tensor = memory_.tensor();
    tensor.shape = {n};
    ASSERT_THAT(op.forward(stream_, tensor, tensor), is_ok());
    float value = 0;
    ASSERT_THAT(support_->copy_to_host(stream_, &value, tensor.data, sizeof value), is_ok());
    ASSERT_THAT(support_->synchronize(stream_), is_ok());
    ASSERT_EQ(value, static_cast<float>(n));
  }
  std::int64_t free_bytes() {  // of the current context, which is the device's primary one
    std::size_t free = 0, total = 0;
    EXPECT_EQ(driver_->mem_get_info(&free, &total), CUDA_SUCCESS);
    return static_cast<std::int64_t>(free);
  }

  testing::TempDir folder_;
  std::unique_ptr<Runtime> runtime_;
  OwnedTensor memory_;
};

TEST_F(IdentitiesGpuTest, DeviceMemoryStaysBoundedInOneOp) {
  const auto op = make_op();
  ASSERT_NO_FATAL_FAILURE(compile(*op, 1, kMost));
  std::int64_t early = 0;
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t n = 1; n <= kMost; ++n) {
      ASSERT_NO_FATAL_FAILURE(expect_number(*op, n));
      if (round == 0 && n == 60) early = free_bytes();
    }
  }
  // Another process may use the device, too: far less than the 960 MiB that staying would cost.
  EXPECT_LT(early - free_bytes(), 320 * kMegabyte);
  const RuntimeStats stats = runtime_->stats();
  EXPECT_EQ(stats.compilations, kMost);
  EXPECT_GE(stats.entries_dropped, kMost - 18);
  EXPECT_LE(stats.loads - stats.unloads, 2 * (18 + 2) + 1);
}

TEST_F(IdentitiesGpuTest, DeviceMemoryComesBackFromOpsThatAreGone) {
  const std::int64_t before = free_bytes();
  for (std::int64_t first = 1; first + 14 <= kMost; first += 15) {
    const auto op = make_op();
    ASSERT_NO_FATAL_FAILURE(compile(*op, first, first + 14));
    for (std::int64_t n = first; n < first + 15; ++n)
      ASSERT_NO_FATAL_FAILURE(expect_number(*op, n));
  }
  EXPECT_EQ(runtime_->stats().compilations, kMost);
  EXPECT_LT(before - free_bytes(), 480 * kMegabyte) << "all that were loaded take 1200";
  runtime_.reset();
  EXPECT_LT(before - free_bytes(), 64 * kMegabyte);
}

TEST_F(IdentitiesGpuTest, AGraphKeepsWhatItHasCaptured) {
  const auto op = make_op();
  ASSERT_NO_FATAL_FAILURE(compile(*op, 1, 120));
  for (std::int64_t n = 1; n <= 40; ++n) ASSERT_NO_FATAL_FAILURE(expect_number(*op, n));
  Tensor tensor = memory_.tensor();
  tensor.shape = {40};  // beyond the limit, and there
  begin();
  EXPECT_THAT(op->forward(recorded_, tensor, tensor), is_ok());
  ASSERT_THAT(instantiate(), is_ok());
  for (std::int64_t n = 41; n <= 120; ++n) ASSERT_NO_FATAL_FAILURE(expect_number(*op, n));
  replay(1);
  float value = 0;
  EXPECT_THAT(support_->copy_to_host(recorded_, &value, tensor.data, sizeof value), is_ok());
  EXPECT_THAT(support_->synchronize(recorded_), is_ok());
  EXPECT_EQ(value, 40);
  drop_graph();
}

}  // namespace
}  // namespace kiln
