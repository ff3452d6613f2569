// Graph capture: launches can be recorded, and loading in one thread does not break what another
// records.

#include "tests/gpu/cuda_fixture.h"

#include <thread>

namespace kiln {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::status_is;

class CudaCaptureTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // Raw driver calls below need a current context; Kiln's own do not.
    CUdevice device = 0;
    CUcontext primary = nullptr;
    ASSERT_EQ(driver_->device_get(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver_->primary_ctx_retain(&primary, device), CUDA_SUCCESS);
    ASSERT_EQ(driver_->ctx_push_current(primary), CUDA_SUCCESS);
    recorded_ = *support_->create_stream(0);
    handle_ = static_cast<CUstream>(recorded_.handle);
  }
  void TearDown() override {
    if (handle_ != nullptr) {
      EXPECT_THAT(support_->destroy_stream(recorded_), is_ok());
    }
    CUcontext popped = nullptr;
    if (handle_ != nullptr) {
      EXPECT_EQ(driver_->ctx_pop_current(&popped), CUDA_SUCCESS);
    }
    CudaTest::TearDown();
  }

  void begin() {
    ASSERT_EQ(FIND_CUDA_FUNCTION(*driver_, cuStreamBeginCapture, 10010)(
                  handle_, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
  }

  // Ends the capture and runs what was recorded `times` times. All in the primary context, as a
  // framework would.
  void end_and_run(int times) {
    CUgraph graph = nullptr;
    ASSERT_EQ(FIND_CUDA_FUNCTION(*driver_, cuStreamEndCapture, 10000)(handle_, &graph),
              CUDA_SUCCESS);
    ASSERT_NE(graph, nullptr);
    CUgraphExec exec = nullptr;
    ASSERT_EQ(FIND_CUDA_FUNCTION(*driver_, cuGraphInstantiateWithFlags, 11040)(&exec, graph, 0),
              CUDA_SUCCESS);
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(FIND_CUDA_FUNCTION(*driver_, cuGraphLaunch, 10000)(exec, handle_), CUDA_SUCCESS);
    }
    ASSERT_THAT(support_->synchronize(recorded_), is_ok());
    EXPECT_EQ(FIND_CUDA_FUNCTION(*driver_, cuGraphExecDestroy, 10000)(exec), CUDA_SUCCESS);
    EXPECT_EQ(FIND_CUDA_FUNCTION(*driver_, cuGraphDestroy, 10000)(graph), CUDA_SUCCESS);
  }

  Stream recorded_{};
  CUstream handle_ = nullptr;
};

TEST_F(CudaCaptureTest, FirstLaunchOfAnImageCanBeRecorded) {
  int* data = make_int(0);
  EXPECT_FALSE(*support_->is_capturing(recorded_));
  begin();
  EXPECT_TRUE(*support_->is_capturing(recorded_));
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  end_and_run(3);
  EXPECT_FALSE(*support_->is_capturing(recorded_));
  EXPECT_EQ(read_int(data), 3);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

TEST_F(CudaCaptureTest, LoadingInAnotherThreadDoesNotBreakTheCapture) {
  int* data = make_int(0);
  const std::string image = *compile();
  begin();
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  std::thread([&] {
    auto loaded = support_->load(0, "cubin", image, names_);
    EXPECT_THAT(loaded, is_ok());
    if (loaded.ok()) {
      EXPECT_THAT(support_->prepare(0, (*loaded)->functions()[0], 1024), is_ok());
    }
  }).join();  // unloads it, too
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  end_and_run(1);
  EXPECT_EQ(read_int(data), 2);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

TEST_F(CudaCaptureTest, TimingARecordedStreamIsRefusedAndTheCaptureGoesOn) {
  int* data = make_int(0);
  begin();
  EXPECT_THAT(support_->time(recorded_, [] { return absl::OkStatus(); }),
              status_is(absl::StatusCode::kFailedPrecondition, HasSubstr("captured")));
  EXPECT_THAT(launch_add_one(recorded_, data), is_ok());
  end_and_run(1);
  EXPECT_EQ(read_int(data), 1);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

}  // namespace
}  // namespace kiln
