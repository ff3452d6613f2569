#include "tests/support/child.h"
#include "tests/tuning/tuning_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

// Processes that share a cache folder, as the ranks of a job do.
namespace kiln::testing {
namespace {

using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> helper(const std::string& folder, std::int64_t traps = 0) {
  return {TUNING_HELPER, folder, std::to_string(traps)};
}

// The last line of a rank: "sweeps=<n> <winner>".
std::string outcome_of(Child& rank) {
  std::string line = rank.read_line();
  if (line == "sweeping") line = rank.read_line();
  EXPECT_EQ(rank.wait(), 0);
  return line;
}
std::string winner_of(const std::string& outcome) { return outcome.substr(outcome.find(' ') + 1); }

TEST(TuningProcessesTest, RanksThatTuneAtOnceEndWithOneWinnerAndOneSweep) {
  TempDir cache;
  std::vector<Child> ranks;
  for (int i = 0; i < 3; ++i) ranks.emplace_back(helper(cache.path(), tuning_backend::kWrong));
  int sweeps = 0;
  std::vector<std::string> winners;
  for (Child& rank : ranks) {
    const std::string outcome = outcome_of(rank);
    sweeps += outcome.rfind("sweeps=1 ", 0) == 0 ? 1 : 0;
    winners.push_back(winner_of(outcome));
  }
  EXPECT_EQ(sweeps, 1);
  EXPECT_EQ(winners[1], winners[0]);
  EXPECT_EQ(winners[2], winners[0]);
  EXPECT_THAT(files_below(cache / "tuning"), SizeIs(1));
}

TEST(TuningProcessesTest, AWinnerOutlivesItsProcess) {
  TempDir cache;
  Child first(helper(cache.path()));
  EXPECT_EQ(outcome_of(first), "sweeps=1 " + to_string(kBest));
  Child second(helper(cache.path()));
  EXPECT_EQ(outcome_of(second), "sweeps=0 " + to_string(kBest));
}

TEST(TuningProcessesTest, ARankThatIsKilledInItsSweepDoesNotStopTheOthers) {
  TempDir cache;
  Child killed(helper(cache.path(), tuning_backend::kMany));
  EXPECT_EQ(killed.read_line(), "sweeping");
  killed.send(SIGKILL);
  EXPECT_EQ(killed.wait(), 128 + SIGKILL);
  EXPECT_THAT(files_below(cache / "tuning"), SizeIs(0));
  Child next(helper(cache.path(), tuning_backend::kMany));
  EXPECT_EQ(next.read_line(), "sweeping");
  // How far the search comes within its budget is the machine's affair.
  EXPECT_THAT(outcome_of(next), StartsWith("sweeps=1 "));
}

}  // namespace
}  // namespace kiln::testing
