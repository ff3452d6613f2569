#include <kiln/status.h>

#include "tests/support/status_matchers.h"
#include "tests/tuning/tuning_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// Real sweeps: the host's compiler, the CPU backend's device, the clock.
namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using tuning_backend::Trap;

TuneOptions quick() {
  TuneOptions options;
  options.rounds = 7;
  options.sample_seconds = 2e-4;
  return options;
}

std::map<std::string, TuneCandidate> by_config(const TuneReport& report) {
  std::map<std::string, TuneCandidate> out;
  for (const TuneCandidate& candidate : report.candidates)
    out.emplace(to_string(candidate.config), candidate);
  return out;
}

class TuningSweepTest : public ::testing::Test {
 protected:
  TempDir cache_;
  std::unique_ptr<Runtime> runtime_ = tuning_runtime(cache_.path());
  CallerTensors tensors_;
};

TEST_F(TuningSweepTest, ABuiltKernelIsSweptAtOnceAndTheBestReplacesTheDefault) {
  auto op = tuning_op(*runtime_);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  EXPECT_EQ(op->kernel_config(), kDefault);
  EXPECT_THAT(op->tune_reports(), IsEmpty());
  op->request_tune(quick());
  ASSERT_THAT(op->tune_reports(), SizeIs(1));
  const TuneReport report = op->tune_reports()[0];
  EXPECT_THAT(report.status, is_ok());
  EXPECT_EQ(report.winner, kBest) << report.decision;
  EXPECT_EQ(report.default_config, kDefault);
  EXPECT_FALSE(report.from_record);
  EXPECT_TRUE(report.complete);
  EXPECT_GT(report.gain_seconds, report.noise_seconds);
  EXPECT_EQ(report.candidates[0].config, kDefault) << "the default always competes";
  EXPECT_THAT(report.problem, HasSubstr("x float32[4096]"));
  EXPECT_EQ(op->kernel_config(), kBest);
  EXPECT_EQ(runtime_->stats().sweeps, 1);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  EXPECT_EQ(tensors_.y[5], 6.0F);
}

TEST_F(TuningSweepTest, AKernelBuiltLaterIsSweptByTheCallThatReachesIt) {
  auto op = tuning_op(*runtime_);
  op->request_tune(quick());
  EXPECT_TRUE(op->tuning_requested());
  EXPECT_THAT(op->tune_reports(), IsEmpty());
  EXPECT_THAT(tensors_.call(*op), is_ok());
  EXPECT_EQ(op->kernel_config(), kBest);
  EXPECT_EQ(runtime_->stats().entries_built, 1) << "tuning does not go through the build function";
  op->request_tune(quick());
  EXPECT_THAT(tensors_.call(*op), is_ok());
  EXPECT_EQ(runtime_->stats().sweeps, 1) << "it is tuned";
}

TEST_F(TuningSweepTest, AKernelTunesAlone) {
  auto op = tuning_op(*runtime_);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  ASSERT_THAT(op->iter_kernels(), SizeIs(1));
  EXPECT_TRUE(op->iter_kernels()[0]->request_tune());
  EXPECT_FALSE(op->tuning_requested());
  EXPECT_EQ(op->kernel_config(), kBest);

  auto fixed = tuning_op(*runtime_, Trap::kNoTuning);
  EXPECT_THAT(tensors_.call(*fixed), is_ok());
  EXPECT_FALSE(fixed->iter_kernels()[0]->request_tune());
  fixed->request_tune(quick());
  EXPECT_THAT(fixed->tune_reports(), IsEmpty()) << "a kernel without candidates does not tune";
  EXPECT_EQ(fixed->kernel_config(), kDefault);
}

TEST_F(TuningSweepTest, OnlyTheInstanceThatWasAskedChanges) {
  auto op = tuning_op(*runtime_), other = tuning_op(*runtime_);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  EXPECT_THAT(tensors_.call(*other), is_ok());
  op->request_tune(quick());
  EXPECT_EQ(op->kernel_config(), kBest);
  EXPECT_EQ(other->kernel_config(), kDefault);
}

TEST_F(TuningSweepTest, AWrongCandidateNeverWins) {
  auto op = tuning_op(*runtime_, Trap::kWrong);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  op->request_tune(quick());
  const TuneReport report = op->tune_reports().at(0);
  EXPECT_EQ(report.winner, kBest) << report.decision;
  auto candidates = by_config(report);
  // One that writes nothing at all is the fastest, and one is off by one.
  for (const std::string config : {"work=0 kind=1 twin=0", "work=1 kind=1 twin=0"}) {
    EXPECT_EQ(candidates[config].state, CandidateState::wrong) << config;
    EXPECT_THAT(candidates[config].reason, HasSubstr("must be the default's"));
  }
}

TEST_F(TuningSweepTest, WhatDoesNotCompileIsOutWithTheReason) {
  auto op = tuning_op(*runtime_, Trap::kNoCompile);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  op->request_tune(quick());
  const TuneReport report = op->tune_reports().at(0);
  EXPECT_EQ(report.winner, kBest) << report.decision;
  const TuneCandidate broken = by_config(report)["work=1 kind=4 twin=0"];
  EXPECT_EQ(broken.state, CandidateState::failed);
  EXPECT_THAT(broken.reason, HasSubstr("error"));
}

TEST_F(TuningSweepTest, TheSameByAnotherNameDoesNotReplaceTheDefault) {
  auto op = tuning_op(*runtime_, Trap::kTwins);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  op->request_tune();
  const TuneReport report = op->tune_reports().at(0);
  EXPECT_THAT(report.status, is_ok());
  EXPECT_THAT(report.candidates, SizeIs(2));
  EXPECT_EQ(report.winner, kDefault) << report.decision;
}

TEST_F(TuningSweepTest, TheCallersTensorsAreNotWritten) {
  auto op = tuning_op(*runtime_);
  EXPECT_THAT(tensors_.call(*op, /*with_state=*/true), is_ok());
  EXPECT_EQ(tensors_.state[0], 10.0F);
  const CallerTensors before = tensors_;
  op->request_tune(quick());
  EXPECT_THAT(op->tune_reports().at(0).status, is_ok());
  EXPECT_EQ(op->kernel_config(), kBest);
  EXPECT_EQ(tensors_.x, before.x);
  EXPECT_EQ(tensors_.y, before.y);
  EXPECT_EQ(tensors_.state, before.state);
}

TEST_F(TuningSweepTest, AnInputThatDecidesTheWorkIsTheKernelsToSupply) {
  auto op = tuning_op(*runtime_);
  EXPECT_THAT(tensors_.call(*op, false, /*with_lengths=*/true), is_ok());
  op->request_tune(quick());
  EXPECT_THAT(op->tune_reports().at(0).status, is_ok());
  EXPECT_EQ(op->kernel_config(), kBest) << "with random lengths there is no work to tell";

  auto silent = tuning_op(*runtime_, Trap::kNoLengths);
  EXPECT_THAT(tensors_.call(*silent, false, /*with_lengths=*/true), is_ok());
  silent->request_tune(quick());
  EXPECT_THAT(silent->tune_reports().at(0).status,
              status_is(absl::StatusCode::kFailedPrecondition, HasSubstr("input lengths")));
  EXPECT_EQ(silent->kernel_config(), kDefault);
}

TEST_F(TuningSweepTest, TheSameSeedTriesTheSameInTheSameOrder) {
  const auto order_of = [&](std::uint64_t seed) {
    auto op = tuning_op(*runtime_, Trap::kMany);
    EXPECT_THAT(tensors_.call(*op), is_ok());
    TuneOptions options = quick();
    options.policy = SearchPolicy::halving;
    options.sample_size = 6;
    options.seed = seed;
    options.force = true;
    op->request_tune(options);
    std::vector<Config> order;
    const TuneReport report = op->tune_reports().at(0);
    for (const TuneCandidate& candidate : report.candidates) order.push_back(candidate.config);
    return order;
  };
  const std::vector<Config> first = order_of(7);
  ASSERT_THAT(first, SizeIs(6));
  EXPECT_EQ(first[0], kDefault);
  EXPECT_EQ(order_of(7), first);
  EXPECT_NE(order_of(8), first);
}

TEST_F(TuningSweepTest, AnExcludedCandidateIsNotRun) {
  auto op = tuning_op(*runtime_, Trap::kCrash);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  TuneOptions options = quick();
  options.exclude = {{"tuning_toy", "work=1 kind=2 twin=0", "it crashed"}};
  op->request_tune(options);
  const TuneReport report = op->tune_reports().at(0);
  EXPECT_EQ(report.winner, kBest) << report.decision;
  EXPECT_EQ(by_config(report)["work=1 kind=2 twin=0"].state, CandidateState::excluded);
  EXPECT_EQ(by_config(report)["work=1 kind=2 twin=0"].reason, "it crashed");
}

TEST_F(TuningSweepTest, ASpentBudgetLeavesTheDefaultAndSaysSo) {
  auto op = tuning_op(*runtime_, Trap::kMany);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  TuneOptions options = quick();
  options.budget_seconds = 0;
  op->request_tune(options);
  const TuneReport report = op->tune_reports().at(0);
  EXPECT_THAT(report.status, is_ok());
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.winner, kDefault);
  EXPECT_EQ(report.candidates.at(1).state, CandidateState::waiting);
}

TEST_F(TuningSweepTest, ProgressIsToldCandidateByCandidate) {
  auto op = tuning_op(*runtime_);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  TuneOptions options = quick();
  std::map<TuneProgress::Phase, int> told;
  std::vector<std::string> checked;
  options.progress = [&](const TuneProgress& progress) {
    ++told[progress.phase];
    EXPECT_EQ(progress.implementation, "tuning_toy");
    if (progress.phase == TuneProgress::Phase::checking) checked.emplace_back(progress.candidate);
  };
  op->request_tune(options);
  EXPECT_THAT(checked,
              ElementsAre("work=8 kind=0 twin=0", "work=1 kind=0 twin=0", "work=4 kind=0 twin=0"));
  EXPECT_GT(told[TuneProgress::Phase::timing], 0);
  EXPECT_EQ(told[TuneProgress::Phase::done], 1);
}

TEST_F(TuningSweepTest, WhatRanksAgreeOnIsUsed) {
  auto op = tuning_op(*runtime_);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  const Config agreed{{"work", 4}, {"kind", 0}, {"twin", 0}};
  TuneOptions options = quick();
  options.agree = [&](const TuneReport& mine) {
    EXPECT_EQ(mine.winner, kBest);
    return agreed;
  };
  op->request_tune(options);
  EXPECT_EQ(op->kernel_config(), agreed);

  auto other = tuning_op(*runtime_, Trap::kWrong);
  EXPECT_THAT(tensors_.call(*other), is_ok());
  options.agree = [](const TuneReport&) { return Config{{"work", 1234}}; };
  other->request_tune(options);
  EXPECT_THAT(other->tune_reports().at(0).status,
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("work=1234")));
  EXPECT_EQ(other->kernel_config(), kDefault);
}

TEST_F(TuningSweepTest, CallsOfOtherThreadsGoOnRightDuringASweep) {
  auto op = tuning_op(*runtime_, Trap::kWrong);
  EXPECT_THAT(tensors_.call(*op), is_ok());
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, calls{0};
  std::thread caller([&] {
    CallerTensors mine(64);
    while (!stop) {
      if (!mine.call(*op).ok() || mine.y[63] != 6.0F) ++wrong;
      ++calls;
    }
  });
  op->request_tune(quick());
  stop = true;
  caller.join();
  EXPECT_EQ(wrong, 0) << "of " << calls << " calls";
  EXPECT_THAT(op->tune_reports().at(0).status, is_ok());
}

TEST_F(TuningSweepTest, TheLargestCallIsMeasured) {
  auto op = tuning_op(*runtime_);
  CallerTensors large(8192), small(16);
  EXPECT_THAT(small.call(*op), is_ok());
  EXPECT_THAT(large.call(*op), is_ok());
  EXPECT_THAT(tensors_.call(*op), is_ok());
  op->request_tune(quick());
  ASSERT_THAT(op->tune_reports(), SizeIs(1));
  EXPECT_THAT(op->tune_reports()[0].problem, HasSubstr("x float32[8192]"));
}

}  // namespace
}  // namespace kiln::testing
