#include "runtime/tune_loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::internal {
namespace {

using ::testing::HasSubstr;

const DeviceFacts kH200{90, 132, 232448, "h200"};

TEST(TunePruningTest, OccupancyFollowsFromTheCompilersReport) {
  // Figures of the occupancy tables of the CUDA toolkit.
  EXPECT_DOUBLE_EQ(occupancy_of(kH200, 32, 0, 256), 1.0);
  EXPECT_DOUBLE_EQ(occupancy_of(kH200, 64, 0, 256), 0.5);
  EXPECT_DOUBLE_EQ(occupancy_of(kH200, 255, 0, 256), 8.0 / 64);
  EXPECT_DOUBLE_EQ(occupancy_of(kH200, 32, 100 << 10, 128), 8.0 / 64) << "two blocks by smem";
  EXPECT_DOUBLE_EQ(occupancy_of({86, 84, 101376, "a10"}, 32, 0, 1024), 32.0 / 48);
  EXPECT_DOUBLE_EQ(occupancy_of(kH200, 255, 0, 1024), 0) << "not one block fits";
  EXPECT_DOUBLE_EQ(occupancy_of(DeviceFacts{}, 32, 0, 256), -1) << "a host has none";
  EXPECT_DOUBLE_EQ(occupancy_of(kH200, -1, 0, 256), -1);
}

TEST(TunePruningTest, WhatSpillsOrDoesNotFitIsRuledOut) {
  TuneCandidate by_default, candidate;
  by_default.spill_bytes = 0;
  EXPECT_EQ(ruled_out(candidate, by_default, kH200), "") << "what is not known rules nothing out";
  candidate.spill_bytes = 64;
  candidate.smem_bytes = 232448;
  EXPECT_EQ(ruled_out(candidate, by_default, kH200), "");
  candidate.spill_bytes = 400;
  EXPECT_THAT(ruled_out(candidate, by_default, kH200), HasSubstr("spills 400 bytes"));
  by_default.spill_bytes = 380;
  EXPECT_EQ(ruled_out(candidate, by_default, kH200), "") << "the default spills as much";
  candidate.smem_bytes = 232449;
  EXPECT_THAT(ruled_out(candidate, by_default, kH200), HasSubstr("shared memory"));
}

TEST(TunePruningTest, SweepsHaveStreamsOfTheirOwn) {
  const Stream real{{DeviceType::cuda(), 3}, nullptr};
  EXPECT_EQ(sweep_stream(real).device.index, 3 + kSweepIndex);
  EXPECT_EQ(real_device(sweep_stream(real).device), real.device);
  EXPECT_EQ(real_device(real.device), real.device);
}

}  // namespace
}  // namespace kiln::internal
