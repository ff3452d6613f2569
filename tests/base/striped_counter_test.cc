#include "base/striped_counter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace kiln {
namespace {

TEST(StripedCounterTest, NothingThatThreadsAddIsLost) {
  StripedCounter counter, other;
  constexpr int kThreads = 50, kSteps = 2000;  // more than there are stripes
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int step = 0; step < kSteps; ++step) counter.add();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), kThreads * kSteps);
  EXPECT_EQ(other.value(), 0);
}

}  // namespace
}  // namespace kiln
