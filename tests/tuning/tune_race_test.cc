#include "runtime/tune_race.h"

#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <vector>

// The race by itself, on times that are given: everything that a clock would blur.
namespace kiln::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_ok;
using ::testing::SizeIs;
using testing::status_is;

TEST(TuneRaceTest, ExhaustiveSearchKeepsTheAuthorsOrder) {
  TuneOptions options;
  options.exhaustive_limit = 5;
  EXPECT_THAT(search_order(5, options), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(searches_by_halving(5, options));
  EXPECT_TRUE(searches_by_halving(6, options));
}

TEST(TuneRaceTest, TheSampleIsSeededAndBeginsWithTheDefault) {
  TuneOptions options;
  options.policy = SearchPolicy::halving;
  options.sample_size = 16;
  options.seed = 3;
  const std::vector<std::size_t> order = search_order(1000, options);
  EXPECT_THAT(order, SizeIs(16));
  EXPECT_EQ(order[0], 0u);
  EXPECT_EQ(search_order(1000, options), order);
  // The same on every machine and with every standard library: these very ones.
  EXPECT_THAT(std::vector<std::size_t>(order.begin(), order.begin() + 4),
              ElementsAre(0, 909, 419, 512));
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end()) << "none is tried twice";
  options.seed = 4;
  EXPECT_NE(search_order(1000, options), order);
}

// A race of racers that take `seconds` each, times what the place of its image makes of it, plus
// what `disturb` adds to the k-th sample.
struct Given {
  explicit Given(std::vector<double> times) : seconds(std::move(times)), racers(seconds.size()) {}
  absl::StatusOr<RaceResult> run(bool halving = false) {
    return Race(
               racers, options, halving,
               [this](std::size_t i) -> absl::StatusOr<double> {
                 ++samples[i];
                 ++total;
                 if (failing.count(i) > 0 && samples[i] > failing[i]) return failure;
                 const double at = places.empty() ? 1 : places[i];
                 return seconds[i] * at * (1 + 0.001 * (total % 7)) +
                        (disturb ? disturb(total) : 0);
               },
               [this](std::size_t i) -> absl::Status {
                 loads.push_back(i);
                 if (i == failing_load) return failure;
                 if (place) places[i] = place(static_cast<int>(loads.size()));
                 return absl::OkStatus();
               },
               [this] { return total >= time_limit; })
        .run();
  }
  std::vector<double> seconds;
  std::vector<Racer> racers;
  TuneOptions options;
  std::map<std::size_t, int> samples, failing;  // failing: after so many samples
  absl::Status failure = absl::InternalError("it broke");
  std::function<double(int)> disturb;
  std::vector<double> places;        // of the images that are loaded; empty: all alike
  std::function<double(int)> place;  // of the k-th load that is asked for
  std::vector<std::size_t> loads;    // who was loaded anew
  std::optional<std::size_t> failing_load;
  int total = 0, time_limit = 1 << 30;
};

TEST(TuneRaceTest, TheFastestWinsAndLosersAreStoppedEarly) {
  Given given({4, 3, 2, 8});
  const auto result = given.run();
  ASSERT_THAT(result, is_ok());
  EXPECT_EQ(result->best, 2u);
  EXPECT_TRUE(result->decision.replace);
  EXPECT_TRUE(result->complete);
  EXPECT_EQ(given.racers[3].state, CandidateState::stopped);
  EXPECT_THAT(given.racers[3].reason, HasSubstr("beyond chance"));
  EXPECT_LT(given.samples[3], given.options.rounds);
  EXPECT_EQ(given.racers[0].state, CandidateState::measured) << "the default always competes";
}

TEST(TuneRaceTest, TheDefaultStaysWhereItIsTheFastestOrNobodyIsBetter) {
  for (const double other : {1.0, 1.2}) {
    Given given({1, other});
    const auto result = given.run();
    ASSERT_THAT(result, is_ok());
    EXPECT_FALSE(result->decision.replace) << result->decision.text;
  }
  Given alone({1});
  const auto result = alone.run();
  ASSERT_THAT(result, is_ok());
  EXPECT_EQ(result->best, 0u);
  EXPECT_FALSE(result->decision.replace);
}

TEST(TuneRaceTest, DriftHitsAllAlike) {
  // The machine becomes ten times slower during the race; a tenth faster is still seen.
  Given given({1, 0.9});
  given.disturb = [](int total) { return 0.1 * total; };
  given.options.rounds = 15;
  const auto result = given.run();
  ASSERT_THAT(result, is_ok());
  EXPECT_EQ(result->best, 1u);
}

TEST(TuneRaceTest, HalvingSpendsItsSamplesOnTheFastest) {
  std::vector<double> seconds(64, 10);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += 0.001 * static_cast<double>(i % 9);
  seconds[40] = 5;
  Given given(seconds);
  const auto result = given.run(/*halving=*/true);
  ASSERT_THAT(result, is_ok());
  EXPECT_EQ(result->best, 40u);
  EXPECT_TRUE(result->decision.replace);
  const auto halved = std::count_if(given.racers.begin(), given.racers.end(), [](const Racer& r) {
    return r.state == CandidateState::stopped && r.samples.size() == 3;
  });
  EXPECT_GE(halved, 31);
}

TEST(TuneRaceTest, ACandidateThatFailsIsOutAndTheNextBestIsJudged) {
  Given given({4, 2, 3});
  given.failing[1] = 2;
  const auto result = given.run();
  ASSERT_THAT(result, is_ok());
  EXPECT_EQ(result->best, 2u);
  EXPECT_EQ(given.racers[1].state, CandidateState::failed);
  EXPECT_EQ(given.racers[1].reason, "it broke");

  Given late({4, 2, 2});
  late.failing[1] = late.options.rounds + 1;  // in the deciding rounds
  const auto second = late.run();
  ASSERT_THAT(second, is_ok());
  EXPECT_EQ(second->best, 2u);
}

TEST(TuneRaceTest, TheDecidingPairsAreLoadedAnewInBalancedOrder) {
  Given given({4, 2, 3});
  ASSERT_THAT(given.run(), is_ok());
  const auto pairs = static_cast<std::size_t>(given.options.deciding_rounds);
  ASSERT_THAT(given.loads, SizeIs(2 * pairs));
  std::size_t default_first = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    EXPECT_EQ(given.loads[2 * i] + given.loads[2 * i + 1], 1u) << "the default and the best, once";
    default_first += given.loads[2 * i] == 0 ? 1 : 0;
  }
  EXPECT_EQ(default_first, pairs / 2);
}

TEST(TuneRaceTest, WhereAnImageLiesDoesNotMakeAWinner) {
  // The same code, of which one image lies better: in each round of the race, and for as long as it
  // is loaded. A fresh load lies anywhere, or always better for whoever is loaded first.
  std::mt19937_64 random(1);
  const auto anywhere = [&](int) { return 1 + 0.02 * static_cast<double>(random() % 1000) / 1000; };
  const auto better_first = [](int load) { return load % 2 == 1 ? 1 : 1.02; };
  for (const std::function<double(int)>& place :
       {std::function<double(int)>(anywhere), std::function<double(int)>(better_first)}) {
    Given twins({1, 1});
    twins.places = {1.02, 1};
    twins.place = place;
    const auto result = twins.run();
    ASSERT_THAT(result, is_ok());
    EXPECT_EQ(result->best, 1u);
    EXPECT_FALSE(result->decision.replace) << result->decision.text;
    EXPECT_LT(result->decision.gain, result->decision.noise);

    Given faster({1, 0.95});
    faster.places = {1, 1};
    faster.place = place;
    const auto won = faster.run();
    ASSERT_THAT(won, is_ok());
    EXPECT_TRUE(won->decision.replace) << won->decision.text;
  }
}

TEST(TuneRaceTest, WhatCannotBeLoadedAgainIsOut) {
  Given given({4, 2, 2});
  given.failing_load = 1;
  const auto result = given.run();
  ASSERT_THAT(result, is_ok());
  EXPECT_EQ(result->best, 2u);
  EXPECT_EQ(given.racers[1].state, CandidateState::failed);
  EXPECT_EQ(given.racers[1].reason, "it broke");

  Given without_default({4, 2});
  without_default.failing_load = 0;
  EXPECT_THAT(without_default.run(), status_is(absl::StatusCode::kInternal));
}

TEST(TuneRaceTest, AFailingDefaultAndAnErrorThatStaysEndIt) {
  Given given({4, 2});
  given.failing[0] = 1;
  EXPECT_THAT(given.run(), status_is(absl::StatusCode::kInternal));

  Given sticky({4, 2});
  sticky.failing[1] = 1;
  sticky.failure = absl::AbortedError("illegal address");
  EXPECT_THAT(sticky.run(), status_is(absl::StatusCode::kAborted));
  EXPECT_EQ(sticky.racers[1].state, CandidateState::failed);
}

TEST(TuneRaceTest, WhenTimeIsUpWhatWasMeasuredDecides) {
  Given given({4, 2, 3});
  given.time_limit = 1;
  const auto result = given.run();
  ASSERT_THAT(result, is_ok());
  EXPECT_FALSE(result->complete);
  EXPECT_EQ(result->best, 1u);
  EXPECT_TRUE(result->decision.replace) << "the deciding rounds are always run";
}

}  // namespace
}  // namespace kiln::internal
