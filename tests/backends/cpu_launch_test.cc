#include "tests/backends/cpu_fixture.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kiln {
namespace {

using cpu::CpuSupport;
using testing::compile_for_cpu;
using ::testing::HasSubstr;
using testing::is_ok;
using testing::kCpuStream;
using testing::status_is;

// Every block writes its own number, made from all three indices, plus `add`, by way of its scratch
// memory.
constexpr const char* kNumberKernel = R"(
KILN_CPU_KERNEL(number) {
  const std::uint64_t at = (std::uint64_t{block->index[2]} * block->grid[1] + block->index[1]) * block->grid[0] + block->index[0];
  auto* scratch = static_cast<std::uint64_t*>(block->scratch);
  for (unsigned i = 0; i < block->scratch_bytes / 8; ++i) scratch[i] = at + kiln::arg<std::uint64_t>(args, 1);
  kiln::arg<std::uint64_t*>(args, 0)[at] = block->scratch_bytes > 0 ? scratch[block->scratch_bytes / 8 - 1] : at;
}
)";

class CpuLaunchTest : public ::testing::Test {
 protected:
  void load(CpuSupport& support) {
    const auto compiled = compile_for_cpu(support, kNumberKernel, {"number"});
    ASSERT_THAT(compiled, is_ok());
    auto loaded = support.load(0, compiled->kind, compiled->image, kernels_);
    ASSERT_THAT(loaded, is_ok());
    image_ = *std::move(loaded);
  }
  void* function() const { return image_->functions()[0]; }
  // Launches and counts the wrong results.
  int wrong(CpuSupport& support, const LaunchShape& shape, std::uint64_t add) const {
    std::vector<std::uint64_t> out(std::size_t{shape.grid[0]} * shape.grid[1] * shape.grid[2],
                                   ~std::uint64_t{0});
    std::uint64_t* data = out.data();
    void* args[] = {&data, &add};
    if (!support.launch(function(), kCpuStream, shape, args).ok()) return -1;
    int count = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      count += out[i] != i + (shape.smem_bytes > 0 ? add : 0);
    return count;
  }

  const std::vector<std::string> kernels_ = {"number"};
  std::unique_ptr<LoadedImage> image_;
};

TEST_F(CpuLaunchTest, TenThousandBlocksFromEightThreads) {
  CpuSupport support({.threads = 4});
  load(support);
  std::vector<int> results(8, -1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      int total = 0;
      for (int round = 0; round < 20; ++round) {
        total += wrong(support, {.grid = {100, 10, 10}, .smem_bytes = 64},
                       static_cast<std::uint64_t>(t * 1000 + round));
      }
      results[static_cast<std::size_t>(t)] = total;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, std::vector<int>(8, 0));
}

TEST_F(CpuLaunchTest, AnyGridOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    CpuSupport support({.threads = threads});
    load(support);
    for (const std::uint32_t blocks : {1u, 2u, 3u, 7u, 127u, 128u, 129u, 1000u}) {
      EXPECT_EQ(wrong(support, {.grid = {blocks, 1, 1}}, 0), 0)
          << blocks << " blocks, " << threads << " threads";
      EXPECT_EQ(wrong(support, {.grid = {1, blocks, 3}, .smem_bytes = 8}, 5), 0) << blocks;
    }
    EXPECT_EQ(wrong(support, {.grid = {0, 5, 5}}, 0), 0);
  }
}

TEST_F(CpuLaunchTest, RefusesWhatItCannotLaunch) {
  CpuSupport support;
  load(support);
  const std::int64_t budget = support.facts(0)->smem_budget;
  EXPECT_THAT(support.prepare(0, function(), static_cast<std::uint32_t>(budget)), is_ok());
  EXPECT_THAT(
      support.prepare(0, function(), static_cast<std::uint32_t>(budget + 1)),
      status_is(absl::StatusCode::kResourceExhausted, HasSubstr(std::to_string(budget + 1))));
  void* none[] = {nullptr};
  EXPECT_THAT(support.launch(function(), kCpuStream,
                             {.smem_bytes = static_cast<std::uint32_t>(budget + 1)}, none),
              status_is(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(support.launch(function(), kCpuStream, {.cluster = {2, 1, 1}}, none),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("2 x 1 x 1")));
  EXPECT_THAT(support.launch(function(), kCpuStream, {.grid = {~0u, ~0u, ~0u}}, none),
              status_is(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(support.launch(nullptr, kCpuStream, {}, none),
              status_is(absl::StatusCode::kInvalidArgument));
}

// Two images whose kernels have one name keep apart, although the loader finds both by a descriptor
// of the same number.
TEST_F(CpuLaunchTest, ImagesWithOneKernelNameKeepApart) {
  CpuSupport support;
  std::vector<std::unique_ptr<LoadedImage>> images;
  for (int i = 0; i < 4; ++i) {
    const auto compiled = compile_for_cpu(
        support,
        "KILN_CPU_KERNEL(number) { *kiln::arg<int*>(args, 0) = " + std::to_string(i) + "; }",
        kernels_);
    ASSERT_THAT(compiled, is_ok());
    auto loaded = support.load(0, compiled->kind, compiled->image, kernels_);
    ASSERT_THAT(loaded, is_ok());
    images.push_back(*std::move(loaded));
  }
  for (int i = 0; i < 4; ++i) {
    int got = -1;
    int* out = &got;
    void* args[] = {&out};
    ASSERT_THAT(
        support.launch(images[static_cast<std::size_t>(i)]->functions()[0], kCpuStream, {}, args),
        is_ok());
    EXPECT_EQ(got, i);
  }
}

TEST_F(CpuLaunchTest, AForkedChildLaunches) {
  CpuSupport support({.threads = 4});
  load(support);
  ASSERT_EQ(wrong(support, {.grid = {1000, 1, 1}}, 0), 0);  // the pool's threads run now
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);  // a hang ends the child by a signal
    _exit(wrong(support, {.grid = {1000, 1, 1}}, 0) == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(wrong(support, {.grid = {1000, 1, 1}}, 0), 0);
}

}  // namespace
}  // namespace kiln
