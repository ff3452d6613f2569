#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace kiln::cache {
namespace {

using testing::is_ok;
using testing::make_artifact;
using testing::share;

TEST(MemoryTierTest, TheLeastRecentlyUsedGoesFirst) {
  const auto store = make_store({.max_memory_bytes = 35000});
  for (int i = 0; i < 3; ++i) ASSERT_THAT(store->put(share(make_artifact(i, 10000))), is_ok());
  EXPECT_TRUE((*store->find(make_artifact(0))).has_value());
  ASSERT_THAT(store->put(share(make_artifact(3, 10000))), is_ok());
  EXPECT_TRUE((*store->find(make_artifact(0))).has_value());
  EXPECT_FALSE((*store->find(make_artifact(1))).has_value());
  EXPECT_TRUE((*store->find(make_artifact(3))).has_value());
  EXPECT_EQ(store->stats().evicted, 1);
}

TEST(MemoryTierTest, WhatWasJustPutIsThereHoweverLarge) {
  const auto store = make_store({.max_memory_bytes = 10});
  ASSERT_THAT(store->put(share(make_artifact(1, 10000))), is_ok());
  EXPECT_TRUE((*store->find(make_artifact(1))).has_value());
}

TEST(MemoryTierTest, AnEvictedArtifactInUseLivesOn) {
  const auto store = make_store({.max_memory_bytes = 10});
  ASSERT_THAT(store->put(share(make_artifact(1, 1000))), is_ok());
  const auto found = *store->find(make_artifact(1));
  ASSERT_THAT(store->put(share(make_artifact(2, 1000))), is_ok());
  EXPECT_EQ(found->artifact->image, make_artifact(1, 1000).image);
}

TEST(MemoryTierTest, ManyThreads) {
  const auto store = make_store({.max_memory_bytes = 20000});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&store, t] {
      for (int i = 0; i < 200; ++i) {
        const int seed = (i + t) % 16;
        EXPECT_THAT(store->put(share(make_artifact(seed, 2000))), is_ok());
        const auto found = *store->find(make_artifact((seed + 5) % 16));
        if (found) {
          EXPECT_EQ(found->artifact->image, make_artifact((seed + 5) % 16, 2000).image);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store->stats().stored, 1600);
}

}  // namespace
}  // namespace kiln::cache
