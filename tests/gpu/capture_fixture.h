#ifndef KILN_TESTS_GPU_CAPTURE_FIXTURE_H_
#define KILN_TESTS_GPU_CAPTURE_FIXTURE_H_

#include "tests/gpu/cuda_fixture.h"

namespace kiln {

// A stream whose launches are recorded between begin() and end_and_run().
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
      EXPECT_THAT(support_->destroy_stream(recorded_), testing::is_ok());
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

  // Ends the capture; what was recorded can be replayed.
  absl::Status instantiate() {
    CUgraph graph = nullptr;
    const CUresult ended = FIND_CUDA_FUNCTION(*driver_, cuStreamEndCapture, 10000)(handle_, &graph);
    if (ended != CUDA_SUCCESS || graph == nullptr)
      return absl::InternalError("the capture was broken");
    const CUresult made =
        FIND_CUDA_FUNCTION(*driver_, cuGraphInstantiateWithFlags, 11040)(&exec_, graph, 0);
    EXPECT_EQ(FIND_CUDA_FUNCTION(*driver_, cuGraphDestroy, 10000)(graph), CUDA_SUCCESS);
    return made == CUDA_SUCCESS ? absl::OkStatus() : absl::InternalError("no graph was made");
  }
  void replay(int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(FIND_CUDA_FUNCTION(*driver_, cuGraphLaunch, 10000)(exec_, handle_), CUDA_SUCCESS);
    }
    ASSERT_THAT(support_->synchronize(recorded_), testing::is_ok());
  }
  void drop_graph() {
    EXPECT_EQ(FIND_CUDA_FUNCTION(*driver_, cuGraphExecDestroy, 10000)(exec_), CUDA_SUCCESS);
    exec_ = nullptr;
  }
  // Ends the capture and runs what was recorded `times` times, as a framework would.
  void end_and_run(int times) {
    ASSERT_THAT(instantiate(), testing::is_ok());
    replay(times);
    drop_graph();
  }

  Stream recorded_{};
  CUstream handle_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

}  // namespace kiln

#endif  // KILN_TESTS_GPU_CAPTURE_FIXTURE_H_
