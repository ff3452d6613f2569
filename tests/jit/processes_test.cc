#include "jit/process.h"
#include "tests/jit/jit_test_util.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace kiln::jit {
namespace {

absl::StatusOr<ProcessResult> run_helper(const std::string& cache_dir, const std::string& seed,
                                         std::string folder = "") {
  return run_process({.program = KILN_JIT_BUILD_HELPER,
                      .arguments = {"jit_build_helper", cache_dir, seed},
                      .environment = {"PATH=/usr/bin:/bin"},
                      .folder = std::move(folder)});
}

std::string field(const ProcessResult& result, const std::string& name) {
  const std::size_t at = result.output.find(name + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 1;
  return result.output.substr(begin, result.output.find_first_of(" \n", begin) - begin);
}

TEST(ProcessesTest, EightProcessesOfOneColdKeyCompileOnce) {
  for (const char* seed : {"1", "2", "3"}) {
    const ScratchFolder folder;
    std::vector<absl::StatusOr<ProcessResult>> results(8, absl::UnknownError("not run"));
    std::vector<std::thread> threads;
    for (auto& result : results)
      threads.emplace_back([&] { result = run_helper(folder.path(), seed); });
    for (std::thread& thread : threads) thread.join();
    int compilations = 0;
    std::set<std::string> images;
    for (const auto& result : results) {
      ASSERT_TRUE(result.ok()) << result.status();
      ASSERT_EQ(result->exit_status, 0) << result->output;
      compilations += std::atoi(field(*result, "compilations").c_str());
      images.insert(field(*result, "image"));
    }
    EXPECT_EQ(compilations, 1);
    EXPECT_EQ(images.size(), 1u);
  }
}

TEST(ProcessesTest, TheSecondProcessFindsItOnDiskFromAnotherFolder) {
  const ScratchFolder folder;
  const ScratchFolder elsewhere;
  const auto first = run_helper(folder.path(), "7");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(field(*first, "found"), "built") << first->output;
  const auto second = run_helper(folder.path(), "7", elsewhere.path());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(field(*second, "found"), "disk") << second->output;
  EXPECT_EQ(field(*second, "compilations"), "0");
  EXPECT_EQ(field(*second, "image"), field(*first, "image"));
}

TEST(ProcessesTest, SeparateCachesGetTheSameBytes) {
  const ScratchFolder one;
  const ScratchFolder two;
  const auto first = run_helper(one.path(), "9");
  const auto second = run_helper(two.path(), "9", two.path());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(field(*second, "compilations"), "1") << second->output;
  EXPECT_EQ(field(*second, "image"), field(*first, "image"));
}

TEST(ProcessesTest, SixtyFourThreadsInEachOfEightProcessesCompileTwentyProgramsTwentyTimes) {
  const ScratchFolder folder;
  std::vector<absl::StatusOr<ProcessResult>> results(8, absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      result = run_process({.program = KILN_JIT_CROWD_HELPER,
                            .arguments = {"jit_crowd_helper", folder.path(), "64", "20"},
                            .environment = {"PATH=/usr/bin:/bin"}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  int compilations = 0;
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_status, 0) << result->output;
    EXPECT_EQ(field(*result, "in_process"), "0") << result->output;
    compilations += std::atoi(field(*result, "compilations").c_str());
  }
  EXPECT_EQ(compilations, 20);
}

}  // namespace
}  // namespace kiln::jit
