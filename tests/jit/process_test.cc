#include "jit/process.h"

#include "tests/jit/jit_test_util.h"

#include <absl/time/clock.h>

namespace kiln::jit {
namespace {

absl::StatusOr<ProcessResult> shell(std::string script, absl::Duration limit = absl::Seconds(30)) {
  return run_process({.program = "/bin/sh",
                      .arguments = {"sh", "-c", std::move(script)},
                      .environment = {"PATH=/usr/bin:/bin"},
                      .deadline = absl::Now() + limit});
}

TEST(ProcessTest, StatusAndOutputComeBack) {
  const auto result = shell("echo out; echo err >&2; cat; exit 7");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_status, 7);
  EXPECT_EQ(result->output, "out\nerr\n");
}

TEST(ProcessTest, OutputIsBounded) {
  const auto result = run_process({.program = "/bin/sh",
                                   .arguments = {"sh", "-c", "head -c 300000 /dev/zero"},
                                   .environment = {"PATH=/usr/bin:/bin"},
                                   .max_output_bytes = 1000});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output.size(), 1000u);
}

TEST(ProcessTest, TheWholeGroupDiesAtTheDeadline) {
  const ScratchFolder folder;
  const absl::Time start = absl::Now();
  const auto result =
      shell("(sleep 2; touch " + folder.path() + "/late) & sleep 60", absl::Milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  absl::SleepFor(absl::Seconds(3));  // would be long enough for a survivor
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/late"));
}

TEST(ProcessTest, AClosedOutputDoesNotHideAHang) {
  const auto result = shell("exec >&- 2>&-; sleep 60", absl::Milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
}

TEST(ProcessTest, ACancelledProgramIsKilledWithItsGroup) {
  const ScratchFolder folder;
  const std::string started = folder.path() + "/started", late = folder.path() + "/late";
  ProcessOptions options{
      .program = "/bin/sh",
      .arguments = {"sh", "-c", "(sleep 2; touch " + late + ") & touch " + started + "; sleep 60"}};
  options.cancelled = [&] { return std::filesystem::exists(started); };
  const auto result = run_process(options);
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
  absl::SleepFor(absl::Seconds(3));  // would be long enough for a survivor
  EXPECT_FALSE(std::filesystem::exists(late));
}

TEST(ProcessTest, AnEndBySignalIsTold) {
  const auto result = shell("kill -SEGV $$");
  EXPECT_TRUE(absl::IsResourceExhausted(result.status()));
  EXPECT_TRUE(contains(result.status(), "signal 11 (Segmentation fault)")) << result.status();
}

TEST(ProcessTest, WhatCannotBeRunIsNamed) {
  const auto result = run_process({.program = "/nonexistent/c++", .arguments = {"c++"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status()));
  EXPECT_TRUE(contains(result.status(), "/nonexistent/c++")) << result.status();
}

}  // namespace
}  // namespace kiln::jit
