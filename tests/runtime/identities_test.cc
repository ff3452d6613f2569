// Ten thousand distinct identities through one op: entries, loaded images and memory stay within
// their limits, and nothing goes while a call or the device still uses it.
#include "tests/support/number_kernel.h"
#include "tests/support/status_matchers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <malloc.h>
#include <mutex>
#include <random>
#include <thread>

namespace kiln::testing {
namespace {

// What an image writes when its launches run: the constant that it was compiled with.
struct Code {
  float number;
};

// A device as asynchronous as a GPU: launches wait in a queue until somebody synchronizes. Compiles
// and loads the real way, an image a constant, and counts what is loaded.
class QueueDevice final : public ToySupport {
 public:
  QueueDevice() : ToySupport({{90, 132, 232448, "h200"}}) {}
  ~QueueDevice() override { EXPECT_EQ(loaded, 0) << "images outlive their runtime"; }

  const Compiler& compiler() const override { return compiler_; }
  absl::StatusOr<std::unique_ptr<LoadedImage>> load(int, std::string_view, std::string_view image,
                                                    std::span<const std::string>) override {
    float number = 0;
    std::memcpy(&number, image.data(), sizeof number);
    return std::make_unique<Image>(*this, number);
  }
  absl::Status launch(void* function, const Stream&, const LaunchShape&, void** args) override {
    const std::lock_guard lock(mutex_);
    queue_.push_back({static_cast<const Code*>(function), *static_cast<float**>(args[0])});
    return absl::OkStatus();
  }
  absl::Status synchronize(const Stream&) override {
    ++synchronized;
    const std::lock_guard lock(mutex_);
    for (const Work& work : queue_) *work.to = work.code->number;
    queue_.clear();
    return absl::OkStatus();
  }

  std::atomic<int> loaded{0}, most_loaded{0}, synchronized{0};
  std::atomic<int> unloaded_at_work{0};

 private:
  struct Work {
    const Code* code;
    float* to;
  };
  class Image final : public LoadedImage {
   public:
    Image(QueueDevice& device, float number) : device_(device), code_{number}, function_(&code_) {
      const int now = ++device_.loaded;
      int most = device_.most_loaded;
      while (now > most && !device_.most_loaded.compare_exchange_weak(most, now)) {
      }
    }
    ~Image() override {
      const std::lock_guard lock(device_.mutex_);
      const auto uses = [this](const Work& work) { return work.code == &code_; };
      device_.unloaded_at_work += static_cast<int>(std::erase_if(device_.queue_, uses));
      --device_.loaded;
    }
    std::span<void* const> functions() const override { return {&function_, 1}; }

   private:
    QueueDevice& device_;
    Code code_;
    void* function_;
  };
  class NumberCompiler final : public Compiler {
    absl::StatusOr<CompilerId> id() const override { return CompilerId{"numbers", "1", ""}; }
    absl::StatusOr<CompileResult> compile(const CompileRequest& request) const override {
      const std::string& define = request.defines.at(0);  // NUMBER=N
      const float number = std::stof(define.substr(define.find('=') + 1));
      std::string image(64 << 10, '\0');
      std::memcpy(image.data(), &number, sizeof number);
      return CompileResult{.kind = "number", .image = image, .kernels = {{.name = "number"}}};
    }
  };
  const NumberCompiler compiler_;
  std::mutex mutex_;
  std::vector<Work> queue_;
};

const std::atomic<int>& kernels_alive = NumberKernel</*on_host=*/true>::alive;

class IdentitiesTest : public ::testing::Test {
 protected:
  static constexpr int kMost = 10000;  // the greatest identity

  void start(std::int64_t max_entries) {
    RuntimeOptions options;
    options.max_entries = max_entries;
    device_ = std::make_shared<QueueDevice>();
    auto runtime = number_runtime</*on_host=*/true>(options, "nothing", device_);
    ASSERT_THAT(runtime, is_ok());
    runtime_ = *std::move(runtime);
    op_ = make_op();
    x_.resize(kMost);
  }
  std::unique_ptr<ToyFwdOp> make_op() {
    auto op = toy_op_of(*runtime_);
    EXPECT_THAT(op, is_ok());
    return *std::move(op);
  }
  // Enqueues a call of identity `n`, whose number will be in `to`.
  absl::Status call(ToyFwdOp& op, std::int64_t n, float* to) {
    const Device device = toy_stream().device;
    return op.forward(toy_stream(), Tensor::contiguous(x_.data(), device, DType::float32, {n}),
                      Tensor::contiguous(to, device, DType::float32, {n}));
  }
  void expect_number(ToyFwdOp& op, std::int64_t n) {
    float y = 0;
    ASSERT_THAT(call(op, n, &y), is_ok());
    ASSERT_THAT(device_->synchronize(toy_stream()), is_ok());
    ASSERT_EQ(y, static_cast<float>(n));
  }
  static std::int64_t heap_bytes() {  // 0 under a sanitizer
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
  }

  std::shared_ptr<QueueDevice> device_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<ToyFwdOp> op_;
  std::vector<float> x_;
};

TEST_F(IdentitiesTest, TenThousandStayWithinTheLimits) {
  start(64);
  // By then the cache in memory is full, too: 4,096 images of 64 KiB.
  constexpr int kFull = 5000;
  std::int64_t heap = 0;
  for (int n = 1; n <= kMost; ++n) {
    ASSERT_NO_FATAL_FAILURE(expect_number(*op_, n));
    ASSERT_LE(kernels_alive, 64 + 8);
    if (n == kFull) heap = heap_bytes();
  }
  EXPECT_LT(heap_bytes() - heap, (kMost - kFull) * 200) << "bytes that 5,000 more identities cost";
  EXPECT_EQ(kernels_alive, 64 + 8);
  EXPECT_LE(device_->most_loaded, 2 * (64 + 8 + 8) + 1);
  const RuntimeStats stats = runtime_->stats();
  EXPECT_EQ(stats.compilations, kMost);
  EXPECT_EQ(stats.entries_built, kMost);
  EXPECT_EQ(stats.entries_dropped, kMost - 64 - 8);
  EXPECT_EQ(stats.loads - stats.unloads, device_->loaded);
  // What was dropped is built again, of the artifact that the cache has.
  const std::int64_t compiled = runtime_->stats().compilations;
  ASSERT_NO_FATAL_FAILURE(expect_number(*op_, kMost - 100));
  EXPECT_EQ(runtime_->stats().compilations, compiled);
}

TEST_F(IdentitiesTest, WithinTheLimitNothingIsDroppedOrWaitedFor) {
  start(64);
  std::vector<float> y(64);
  for (int round = 0; round < 3; ++round) {
    for (int n = 1; n <= 64; ++n) ASSERT_THAT(call(*op_, n, &y[n - 1]), is_ok());
  }
  EXPECT_EQ(device_->synchronized, 0);
  EXPECT_EQ(runtime_->stats().entries_dropped, 0);
  EXPECT_EQ(runtime_->stats().entries_built, 64);
  ASSERT_THAT(device_->synchronize(toy_stream()), is_ok());
  for (int n = 1; n <= 64; ++n) EXPECT_EQ(y[n - 1], static_cast<float>(n));
}

TEST_F(IdentitiesTest, WithoutALimitAllStay) {
  start(0);
  for (int n = 1; n <= 500; ++n) ASSERT_NO_FATAL_FAILURE(expect_number(*op_, n));
  EXPECT_EQ(kernels_alive, 500);
  EXPECT_EQ(device_->loaded, 500);
}

TEST_F(IdentitiesTest, NothingGoesUnderACallOfAnotherThread) {
  start(8);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(t);
      float y = 0;
      for (int i = 0; i < 500; ++i) {
        const std::int64_t n = 1 + random() % 100;
        ASSERT_THAT(call(*op_, n, &y), is_ok());
        ASSERT_THAT(device_->synchronize(toy_stream()), is_ok());
        ASSERT_EQ(y, static_cast<float>(n));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device_->unloaded_at_work, 0);
  EXPECT_GT(runtime_->stats().entries_dropped, 0);
  EXPECT_LE(kernels_alive, 8 + 1);
}

TEST_F(IdentitiesTest, WhatACallerHoldsOrCapturedIsKept) {
  start(4);
  for (int n = 1; n <= 10; ++n) ASSERT_NO_FATAL_FAILURE(expect_number(*op_, n));
  std::vector<const ToyFwdInterface*> held;
  for (int n = 101; n <= 130; ++n) {
    auto kernel = op_->kernel_for<ToyFwdInterface>(ToyCall{.n = n, .where = {toy_stream().device}});
    ASSERT_THAT(kernel, is_ok());
    held.push_back(*kernel);
  }
  ASSERT_NO_FATAL_FAILURE(expect_number(*op_, 200));  // there, and not kept
  float captured = 0;
  device_->capturing = true;
  const int synchronized = device_->synchronized;
  ASSERT_THAT(call(*op_, 200, &captured), is_ok());
  EXPECT_EQ(device_->synchronized, synchronized)
      << "a stream that is captured cannot be waited for";
  device_->capturing = false;
  // The queue is the graph: it runs after all these.
  std::vector<float> y(300);
  for (int n = 201; n <= 300; ++n) {
    auto kernel = op_->kernel_for<ToyFwdInterface>(ToyCall{.n = n, .where = {toy_stream().device}});
    ASSERT_THAT(kernel, is_ok());
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    const Tensor to = Tensor::contiguous(&y[i], toy_stream().device, DType::float32, {1});
    ASSERT_THAT(held[i]->forward(toy_stream(), to, to), is_ok());
  }
  ASSERT_THAT(device_->synchronize(toy_stream()), is_ok());
  EXPECT_EQ(captured, 200);
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(y[i], static_cast<float>(101 + i));
  EXPECT_EQ(device_->unloaded_at_work, 0);
  EXPECT_EQ(op_->iter_kernels().size(), 4u + 30 + 1 + 100);
}

TEST_F(IdentitiesTest, OpsThatAreGoneKeepFewImages) {
  start(64);
  op_.reset();
  for (int round = 0; round < 100; ++round) {
    const auto op = make_op();
    for (int n = 1; n <= 20; ++n) ASSERT_NO_FATAL_FAILURE(expect_number(*op, round * 20 + n));
  }
  EXPECT_EQ(kernels_alive, 0);
  EXPECT_LE(device_->most_loaded, 2 * (20 + 8) + 20);
  EXPECT_EQ(runtime_->stats().entries_built, 2000);
  // One that is still there is not loaded again.
  const std::int64_t loads = runtime_->stats().loads;
  const auto op = make_op();
  ASSERT_NO_FATAL_FAILURE(expect_number(*op, 2000));
  EXPECT_EQ(runtime_->stats().loads, loads);
}

}  // namespace
}  // namespace kiln::testing
