#ifndef KILN_TESTS_GPU_CUDA_FIXTURE_H_
#define KILN_TESTS_GPU_CUDA_FIXTURE_H_

#include <kiln/device_support.h>

#include "jit/nvrtc_compiler.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_driver.h"
#include "tests/support/gpu.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace kiln {

// The kernels of these tests, built with NVRTC for the device that is here.
inline constexpr const char* kTestKernels = R"(
extern "C" __global__ void add_one(int* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += 1;
}
extern "C" __global__ void last_shared_byte(int* out, int bytes) {
  extern __shared__ unsigned char shared[];
  shared[bytes - 1] = 42;
  __syncthreads();
  *out = shared[bytes - 1];
}
extern "C" __global__ void cluster_size(int* out) {
  unsigned size = 1;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
#endif
  if (blockIdx.x == 0) *out = size;
}
extern "C" __global__ void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
)";

// cuda:0, the driver beside it, and the kernels above. Everything a test makes is released before
// the next.
class CudaTest : public ::testing::Test {
 protected:
  enum Kernel { add_one, last_shared_byte, cluster_size, spin };

  void SetUp() override {
    KILN_NEEDS_GPU();
    auto driver = CudaDriver::open();
    ASSERT_THAT(driver, testing::is_ok());
    driver_ = *std::move(driver);
    support_ = make_cuda_support(jit::make_nvrtc_compiler());
    auto facts = support_->facts(0);
    ASSERT_THAT(facts, testing::is_ok());
    facts_ = *facts;
    auto image = load_kernels();
    ASSERT_THAT(image, testing::is_ok());
    image_ = *std::move(image);
    ASSERT_EQ(image_->functions().size(), 4u);
  }

  void TearDown() override {
    if (support_ != nullptr) {
      EXPECT_THAT(support_->synchronize(stream_), testing::is_ok());
    }
  }

  absl::StatusOr<std::string> compile() {
    CompileRequest request;
    request.source_name = "tests/gpu/kernels.cu";
    request.source = kTestKernels;
    request.kernels = names_;
    KILN_ASSIGN_OR_RETURN(request.target, support_->target_for(facts_, false));
    KILN_ASSIGN_OR_RETURN(CompileResult result, support_->compiler().compile(request));
    return result.image;
  }

  absl::StatusOr<std::unique_ptr<LoadedImage>> load_kernels() {
    KILN_ASSIGN_OR_RETURN(const std::string image, compile());
    return support_->load(0, "cubin", image, names_);
  }

  void* function(Kernel kernel) const { return image_->functions()[kernel]; }

  // One int of device memory with `value`; freed by the caller.
  int* make_int(int value) {
    const auto memory = support_->allocate(stream_, sizeof(int));
    EXPECT_THAT(memory, testing::is_ok());
    EXPECT_THAT(support_->copy_to_device(stream_, *memory, &value, sizeof(int)), testing::is_ok());
    EXPECT_THAT(support_->synchronize(stream_), testing::is_ok());
    return static_cast<int*>(*memory);
  }

  int read_int(const int* device) {
    int value = -1;
    EXPECT_THAT(support_->copy_to_host(stream_, &value, device, sizeof(int)), testing::is_ok());
    EXPECT_THAT(support_->synchronize(stream_), testing::is_ok());
    return value;
  }

  absl::Status launch_add_one(const Stream& stream, int* data) {
    int count = 1;
    void* args[] = {&data, &count};
    return support_->launch(function(add_one), stream, LaunchShape{.block = {32, 1, 1}}, args);
  }

  const std::vector<std::string> names_{"add_one", "last_shared_byte", "cluster_size", "spin"};
  std::unique_ptr<const CudaDriver> driver_;
  std::unique_ptr<DeviceSupport> support_;
  std::unique_ptr<LoadedImage> image_;
  DeviceFacts facts_;
  Stream stream_{};  // the legacy default stream of cuda:0
};

// A driver function that Kiln itself does not call.
#define FIND_CUDA_FUNCTION(driver, symbol, version) \
  reinterpret_cast<PFN_##symbol##_v##version>((driver).find(#symbol, version).value())

}  // namespace kiln

#endif  // KILN_TESTS_GPU_CUDA_FIXTURE_H_
