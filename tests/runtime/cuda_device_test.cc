// What the CUDA device type answers on a machine without a driver. tests/gpu holds what it does on
// a device.

#include "runtime/cuda_device.h"

#include "jit/nvrtc_compiler.h"
#include "runtime/boards.h"
#include "runtime/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using ::testing::HasSubstr;

class CudaDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<DeviceSupport> support_ = make_cuda_support(jit::make_nvrtc_compiler());
};

TEST_F(CudaDeviceTest, TypeIsCuda) { EXPECT_EQ(support_->type(), DeviceType::cuda()); }

TEST_F(CudaDeviceTest, TargetNeedsNoDevice) {
  const auto target = [&](int arch, bool specific) {
    const auto facts = reference_facts(arch);
    return support_->target_for(*facts, specific).value();
  };
  EXPECT_EQ(target(80, false), "sm_80");
  EXPECT_EQ(target(80, true), "sm_80");
  EXPECT_EQ(target(90, false), "sm_90");
  EXPECT_EQ(target(90, true), "sm_90a");
  EXPECT_EQ(target(120, true), "sm_120a");
}

TEST_F(CudaDeviceTest, UnknownArchHasNoTarget) {
  const absl::Status status = support_->target_for(DeviceFacts{.arch = 42}, false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(message_of(status), HasSubstr("42"));
}

TEST_F(CudaDeviceTest, WithoutADriverEveryCallSaysWhatToInstall) {
  if (CudaDriver::open().ok()) GTEST_SKIP() << "this machine has a driver";
  const Stream stream{};
  const auto expect_advice = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(message_of(status), HasSubstr("install the NVIDIA driver"));
  };
  expect_advice(support_->device_count().status());
  expect_advice(support_->facts(0).status());
  expect_advice(support_->load(0, "cubin", "bytes", {}).status());
  expect_advice(support_->prepare(0, nullptr, 0));
  expect_advice(support_->launch(nullptr, stream, {}, nullptr));
  expect_advice(support_->is_capturing(stream).status());
  expect_advice(support_->allocate(stream, 16).status());
  expect_advice(support_->synchronize(stream));
  expect_advice(support_->create_stream(0).status());
  expect_advice(support_->time(stream, [] { return absl::OkStatus(); }).status());
}

TEST_F(CudaDeviceTest, DefaultStreamsCannotBeDestroyed) {
  for (void* handle : {static_cast<void*>(nullptr), static_cast<void*>(CU_STREAM_LEGACY),
                       static_cast<void*>(CU_STREAM_PER_THREAD)}) {
    EXPECT_EQ(support_->destroy_stream(Stream{{}, handle}).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace kiln
