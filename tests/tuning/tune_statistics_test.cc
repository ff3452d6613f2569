#include "runtime/tune_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kiln::internal {
namespace {

using ::testing::HasSubstr;

TEST(TuneStatisticsTest, MiddleAndWidthAreBlindToAnOutlier) {
  const Spread spread = spread_of({1, 2, 3, 4, 1000});
  EXPECT_DOUBLE_EQ(spread.median, 3);
  EXPECT_DOUBLE_EQ(spread.sigma, 1.4826);
  EXPECT_EQ(spread.samples, 5);
  EXPECT_DOUBLE_EQ(spread_of({1, 2, 3, 4}).median, 2.5);
  EXPECT_DOUBLE_EQ(spread_of({}).error(), 0);
  EXPECT_DOUBLE_EQ(spread_of({4, 4, 4}).error(), 0);
}

TEST(TuneStatisticsTest, SignTestIsTheBinomialTail) {
  EXPECT_DOUBLE_EQ(sign_test(0, 10), 1);
  EXPECT_DOUBLE_EQ(sign_test(10, 10), 1.0 / 1024);
  EXPECT_NEAR(sign_test(8, 10), (45 + 10 + 1) / 1024.0, 1e-12);
  EXPECT_DOUBLE_EQ(sign_test(0, 0), 1) << "no pairs prove nothing";
}

TEST(TuneStatisticsTest, PairsCountWinsOfTheChallenger) {
  const std::vector<double> in_force = {5, 5, 5, 5}, challenger = {4, 5, 6, 3};
  const Pairs pairs = compare_pairs(in_force, challenger);
  EXPECT_EQ(pairs.wins, 2);
  EXPECT_EQ(pairs.losses, 1);
  EXPECT_DOUBLE_EQ(pairs.gain.median, 0.5);
}

TEST(TuneStatisticsTest, ACandidateIsStoppedOnlyBeyondChance) {
  const std::vector<double> leader = {1, 1.1, 0.9, 1, 1.05, 0.95, 1};
  std::vector<double> slower;
  for (const double seconds : leader) slower.push_back(seconds + 1);
  EXPECT_TRUE(cannot_win(slower, leader));
  EXPECT_FALSE(cannot_win(leader, slower));
  // Six pairs prove nothing at one in a hundred.
  EXPECT_FALSE(cannot_win(std::vector<double>(slower.begin(), slower.begin() + 6),
                          std::vector<double>(leader.begin(), leader.begin() + 6)));
  // Slower in the middle, but not in every pair.
  EXPECT_FALSE(cannot_win({{2, 2, 2, 0.5, 2, 0.5, 2}}, leader));
}

TEST(TuneStatisticsTest, AClearGainReplacesTheDefault) {
  std::vector<double> in_force, challenger;
  for (int i = 0; i < 20; ++i) {
    in_force.push_back(2 + 0.01 * (i % 5));
    challenger.push_back(1 + 0.01 * (i % 3));
  }
  const Decision decision = decide(in_force, challenger, 0.005);
  EXPECT_TRUE(decision.replace) << decision.text;
  EXPECT_NEAR(decision.gain, 1, 0.05);
  EXPECT_GT(decision.gain, decision.noise);
  EXPECT_THAT(decision.text, HasSubstr("20 of 20"));
  EXPECT_FALSE(decide(challenger, in_force, 0.005).replace);
}

TEST(TuneStatisticsTest, AGainBelowTheLeastOrTheNoiseDoesNot) {
  // Always faster, by a thousandth.
  const std::vector<double> in_force(20, 1.0), barely(20, 0.999);
  EXPECT_FALSE(decide(in_force, barely, 0.005).replace);
  EXPECT_TRUE(decide(in_force, barely, 0.0005).replace);
}

// Two that are alike, on a noisy machine whose clock drifts: hardly ever a replacement.
TEST(TuneStatisticsTest, NoiseIsNotTakenForGain) {
  std::mt19937_64 random(4);
  std::lognormal_distribution<double> noise(0, 0.2);
  int replaced = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> a, b;
    for (int i = 0; i < 20; ++i) {
      const double drift = 1 + 0.05 * i;
      a.push_back(drift * noise(random));
      b.push_back(drift * noise(random));
    }
    replaced += decide(a, b, 0.005).replace ? 1 : 0;
  }
  EXPECT_LE(replaced, 5);
}

}  // namespace
}  // namespace kiln::internal
