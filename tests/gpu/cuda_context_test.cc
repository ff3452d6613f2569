// The caller's own idea of the current context is left alone, whatever it is.

#include "tests/gpu/cuda_fixture.h"

#include <atomic>
#include <thread>
#include <vector>

namespace kiln {
namespace {

using testing::is_ok;

class CudaContextTest : public CudaTest {
 protected:
  CUcontext current() {
    CUcontext context = nullptr;
    EXPECT_EQ(driver_->ctx_get_current(&context), CUDA_SUCCESS);
    return context;
  }

  // One of every kind of call that goes to the driver.
  void use_everything() {
    const auto stream = support_->create_stream(0);
    ASSERT_THAT(stream, is_ok());
    int* data = make_int(1);
    EXPECT_THAT(launch_add_one(stream_, data), is_ok());
    EXPECT_EQ(read_int(data), 2);
    EXPECT_THAT(support_->is_capturing(*stream), is_ok());
    EXPECT_THAT(load_kernels(), is_ok());
    EXPECT_THAT(support_->prepare(0, function(add_one), 1024), is_ok());
    EXPECT_THAT(support_->fill(*stream, data, 0, sizeof(int)), is_ok());
    EXPECT_THAT(support_->time(*stream, [] { return absl::OkStatus(); }), is_ok());
    EXPECT_THAT(support_->free(stream_, data), is_ok());
    EXPECT_THAT(support_->destroy_stream(*stream), is_ok());
  }
};

TEST_F(CudaContextTest, FreshThreadWorksAndStaysWithoutAContext) {
  std::thread([this] {
    EXPECT_EQ(current(), nullptr);
    use_everything();
    EXPECT_EQ(current(), nullptr);
  }).join();
}

TEST_F(CudaContextTest, CallersOwnContextStaysCurrentAndUntouched) {
  const auto create = FIND_CUDA_FUNCTION(*driver_, cuCtxCreate, 3020);
  const auto destroy = FIND_CUDA_FUNCTION(*driver_, cuCtxDestroy, 4000);
  CUdevice device = 0;
  ASSERT_EQ(driver_->device_get(&device, 0), CUDA_SUCCESS);
  CUcontext own = nullptr;
  ASSERT_EQ(create(&own, 0, device), CUDA_SUCCESS);  // makes it current as well
  ASSERT_EQ(current(), own);
  CUdeviceptr memory = 0;
  ASSERT_EQ(driver_->mem_alloc(&memory, 64), CUDA_SUCCESS);

  use_everything();
  EXPECT_EQ(current(), own);

  // On every path, also that of an error.
  EXPECT_FALSE(
      support_->load(0, "cubin", "this is no image at all, but long enough to be looked at", names_)
          .ok());
  EXPECT_EQ(current(), own);
  int* data = nullptr;
  int count = 0;
  void* args[] = {&data, &count};
  const LaunchShape too_large{.block = {4096, 1, 1}};
  EXPECT_FALSE(support_->launch(function(add_one), stream_, too_large, args).ok());
  EXPECT_EQ(current(), own);
  EXPECT_FALSE(support_->prepare(0, function(add_one), 1u << 30).ok());
  EXPECT_EQ(current(), own);

  EXPECT_EQ(driver_->mem_free(memory), CUDA_SUCCESS);  // still usable by its owner
  EXPECT_EQ(destroy(own), CUDA_SUCCESS);
}

TEST_F(CudaContextTest, PrimaryContextThatIsCurrentStaysSo) {
  CUdevice device = 0;
  CUcontext primary = nullptr;
  ASSERT_EQ(driver_->device_get(&device, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver_->primary_ctx_retain(&primary, device), CUDA_SUCCESS);
  ASSERT_EQ(driver_->ctx_push_current(primary), CUDA_SUCCESS);
  use_everything();
  EXPECT_EQ(current(), primary);
  CUcontext popped = nullptr;
  EXPECT_EQ(driver_->ctx_pop_current(&popped), CUDA_SUCCESS);
  EXPECT_EQ(popped, primary);
}

TEST_F(CudaContextTest, ManyThreadsStartOnANewSupportAtOnce) {
  constexpr int kThreads = 16;
  const std::string image = *compile();
  const auto fresh = make_cuda_support(jit::make_nvrtc_compiler());
  int* data = make_int(0);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto loaded = fresh->load(0, "cubin", image, names_);
      const auto stream = fresh->create_stream(0);
      if (!loaded.ok() || !stream.ok() || !fresh->facts(0).ok()) {
        ++failures;
        return;
      }
      // Nobody adds: each thread only reads the same bytes back, through its own image and stream.
      int count = 0;
      int* to = data;
      void* args[] = {&to, &count};
      const absl::Status launched =
          fresh->launch((*loaded)->functions()[add_one], *stream, {}, args);
      const absl::Status waited = fresh->synchronize(*stream);
      if (!launched.ok() || !waited.ok() || !fresh->destroy_stream(*stream).ok()) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(read_int(data), 0);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

TEST_F(CudaContextTest, EveryDeviceLoadsAndLaunchesTheSameImage) {
  const int count = *support_->device_count();
  const std::string image = *compile();
  for (int index = 0; index < count; ++index) {
    if (support_->facts(index)->arch != facts_.arch) continue;
    const auto loaded = support_->load(index, "cubin", image, names_);
    ASSERT_THAT(loaded, is_ok());
    const auto stream = support_->create_stream(index);
    ASSERT_THAT(stream, is_ok());
    auto memory = support_->allocate(*stream, sizeof(int));
    ASSERT_THAT(memory, is_ok());
    EXPECT_THAT(support_->fill(*stream, *memory, 0, sizeof(int)), is_ok());
    int elements = 1;
    void* args[] = {&*memory, &elements};
    EXPECT_THAT(support_->launch((*loaded)->functions()[add_one], *stream, {}, args), is_ok());
    int value = 0;
    EXPECT_THAT(support_->copy_to_host(*stream, &value, *memory, sizeof(int)), is_ok());
    EXPECT_THAT(support_->free(*stream, *memory), is_ok());
    EXPECT_THAT(support_->synchronize(*stream), is_ok());
    EXPECT_EQ(value, 1) << "cuda:" << index;
    EXPECT_THAT(support_->destroy_stream(*stream), is_ok());
  }
}

}  // namespace
}  // namespace kiln
