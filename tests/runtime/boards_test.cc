#include "runtime/boards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::uint64_t gib(double count) { return static_cast<std::uint64_t>(count * 1024 * 1024 * 1024); }

TEST(BoardsTest, EveryBoardIsWholeAndFoundByItsName) {
  std::set<std::string> names;
  for (const Board& board : boards()) {
    EXPECT_TRUE(names.emplace(board.name).second) << board.name;
    EXPECT_GT(smem_budget_of(board.arch), 0) << board.name;
    EXPECT_LT(board.memory_min_gib, board.memory_max_gib) << board.name;
    const auto facts = board_facts(board.name);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(*facts, facts_of(board));
    EXPECT_EQ(facts->calibration, board.name);
  }
  for (const char* name :
       {"a100", "a10", "l4", "l40s", "h100", "h200", "b200", "rtx4090", "rtx3090", "rtx5090"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(BoardsTest, PeaksAreOfBoardsThatAreKnown) {
  EXPECT_EQ(peak_flops("h200", /*bytes=*/false), 989e12);
  EXPECT_EQ(peak_flops("h200", /*bytes=*/true), 2 * 989e12);
  for (const char* unknown : {"h200-mig-1g.18gb", "sm_90-114sm", "cpu", ""})
    EXPECT_EQ(peak_flops(unknown, false), 0) << unknown;
}

// A device that says of itself what the table says must be calibrated as that board and no other.
TEST(BoardsTest, EveryBoardIsCalibratedAsItself) {
  for (const Board& board : boards()) {
    const double memory = (board.memory_min_gib + board.memory_max_gib) / 2;
    EXPECT_EQ(calibrate("NVIDIA " + std::string(board.device_name), gib(memory), board.sm_count,
                        board.arch),
              board.name);
  }
}

TEST(BoardsTest, H200Facts) {
  const DeviceFacts facts = *board_facts("h200");
  EXPECT_EQ(facts, (DeviceFacts{
                       .arch = 90, .sm_count = 132, .smem_budget = 232448, .calibration = "h200"}));
}

TEST(BoardsTest, ArchMeansItsReferenceBoard) {
  const DeviceFacts h200 = *board_facts("h200");
  EXPECT_EQ(*board_facts("90"), h200);
  EXPECT_EQ(*board_facts("sm_90"), h200);
  EXPECT_EQ(*board_facts("sm_90a"), h200);
  EXPECT_EQ(board_facts("80")->calibration, "a100");
  EXPECT_EQ(board_facts("sm_86")->calibration, "a10");
  EXPECT_EQ(board_facts("89")->calibration, "l40s");
  EXPECT_EQ(board_facts("sm_100a")->calibration, "b200");
  EXPECT_EQ(board_facts("120")->calibration, "rtx5090");
}

TEST(BoardsTest, UnknownNamesAndArchsListWhatIsKnown) {
  for (const std::string text : {"h300", "", "sm_", "91", "sm_90b", "H200", "sm_-90", "90 "}) {
    const absl::Status status = board_facts(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(message_of(status), AllOf(HasSubstr(text), HasSubstr("h200"), HasSubstr("120")));
  }
}

TEST(CalibrateTest, NamesAsTheDriverWritesThem) {
  EXPECT_EQ(calibrate("NVIDIA H200", 150754820096, 132, 90), "h200");
  EXPECT_EQ(calibrate("NVIDIA H100 80GB HBM3", gib(79.2), 132, 90), "h100");
  EXPECT_EQ(calibrate("NVIDIA H100 PCIe", gib(79.2), 114, 90), "h100-pcie");
  EXPECT_EQ(calibrate("NVIDIA A100-SXM4-80GB", gib(79.3), 108, 80), "a100");
  EXPECT_EQ(calibrate("NVIDIA A100-PCIE-40GB", gib(39.4), 108, 80), "a100");
  EXPECT_EQ(calibrate("NVIDIA A10G", gib(22.1), 80, 86), "a10g");
  EXPECT_EQ(calibrate("NVIDIA GeForce RTX 4090", gib(23.6), 128, 89), "rtx4090");
}

TEST(CalibrateTest, MigSlicesKeepTheirProfile) {
  EXPECT_EQ(calibrate("NVIDIA H200 MIG 1g.18gb", gib(16), 16, 90), "h200-mig-1g.18gb");
  EXPECT_EQ(calibrate("NVIDIA A100-SXM4-80GB MIG 3g.40gb", gib(39.5), 42, 80), "a100-mig-3g.40gb");
}

TEST(CalibrateTest, WhatDoesNotFitIsCalledByArchAndMultiprocessors) {
  EXPECT_EQ(calibrate("NVIDIA Something New", gib(80), 120, 90), "sm_90-120sm");
  EXPECT_EQ(calibrate("NVIDIA GeForce RTX 4090 Laptop GPU", gib(15.7), 76, 89), "sm_89-76sm");
  EXPECT_EQ(calibrate("NVIDIA H200", gib(140), 132, 100), "sm_100-132sm");  // another arch
  EXPECT_EQ(calibrate("NVIDIA H200", gib(64), 132, 90), "sm_90-132sm");     // another memory
  EXPECT_EQ(calibrate("NVIDIA H200", gib(140), 66, 90), "sm_90-66sm");      // fewer multiprocessors
  EXPECT_EQ(calibrate("", 0, 1, 90), "sm_90-1sm");
}

}  // namespace
}  // namespace kiln
