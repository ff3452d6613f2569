#include "cache/breaker.h"

#include <gtest/gtest.h>

namespace kiln::cache {
namespace {

using Permit = Breaker::Permit;

class BreakerTest : public ::testing::Test {
 protected:
  absl::Time at(double seconds) const { return start_ + absl::Seconds(seconds); }
  void fail(double seconds) { breaker_.report(breaker_.ask(at(seconds)), false, at(seconds)); }

  const absl::Time start_ = absl::UnixEpoch();
  Breaker breaker_{
      {.failures = 3, .first_pause = absl::Seconds(1), .longest_pause = absl::Seconds(4)}};
};

TEST_F(BreakerTest, OpensAfterFailuresInARowOnly) {
  fail(0);
  fail(0);
  breaker_.report(breaker_.ask(at(0)), true, at(0));
  fail(0);
  fail(0);
  EXPECT_EQ(breaker_.ask(at(0)), Permit::request);
  EXPECT_TRUE(breaker_.report(Permit::request, false, at(0)));
  EXPECT_TRUE(breaker_.is_open());
  EXPECT_EQ(breaker_.ask(at(0.9)), Permit::none);
  EXPECT_EQ(breaker_.opened(), 1);
}

TEST_F(BreakerTest, OneProbeDecidesAndPausesDoubleUpToTheLongest) {
  for (int i = 0; i < 3; ++i) fail(0);
  double now = 0;
  for (const double pause : {1.0, 2.0, 4.0, 4.0}) {
    EXPECT_EQ(breaker_.ask(at(now + pause - 0.1)), Permit::none) << pause;
    now += pause;
    EXPECT_EQ(breaker_.ask(at(now)), Permit::probe) << pause;
    EXPECT_EQ(breaker_.ask(at(now)), Permit::none) << "one at a time";
    EXPECT_FALSE(breaker_.report(Permit::probe, false, at(now)));
  }
  EXPECT_EQ(breaker_.ask(at(now + 4)), Permit::probe);
  breaker_.report(Permit::probe, true, at(now + 4));
  EXPECT_FALSE(breaker_.is_open());
  EXPECT_EQ(breaker_.ask(at(now + 4)), Permit::request);
  // Closed, it begins with the first pause again.
  breaker_.report(Permit::request, false, at(now + 4));
  for (int i = 0; i < 2; ++i) fail(now + 4);
  EXPECT_EQ(breaker_.ask(at(now + 5)), Permit::probe);
  EXPECT_EQ(breaker_.opened(), 2);
}

TEST_F(BreakerTest, AnswersThatBeganBeforeItOpenedChangeNothing) {
  const Permit early = breaker_.ask(at(0));
  for (int i = 0; i < 3; ++i) fail(0);
  breaker_.report(early, true, at(0.5));
  EXPECT_TRUE(breaker_.is_open());
  EXPECT_EQ(breaker_.ask(at(1)), Permit::probe);
  breaker_.report(early, false, at(1));
  EXPECT_EQ(breaker_.ask(at(1)), Permit::none) << "the probe is still out";
}

}  // namespace
}  // namespace kiln::cache
