#include <kiln/device.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DeviceTypeTest, FixedOnesHaveFixedIds) {
  EXPECT_EQ(DeviceType().name(), "cuda");
  EXPECT_EQ(DeviceType::cuda().id(), 0);
  EXPECT_EQ(DeviceType::cpu().id(), 1);
  EXPECT_EQ(DeviceType::cpu().name(), "cpu");
  EXPECT_EQ(*DeviceType::named("cuda"), DeviceType::cuda());
  EXPECT_EQ(*DeviceType::named("cpu"), DeviceType::cpu());
}

TEST(DeviceTypeTest, EqualNamesAreEqualValues) {
  const DeviceType acme = *DeviceType::named("acme");
  EXPECT_EQ(acme, *DeviceType::named(std::string("ac") + "me"));
  EXPECT_NE(acme, *DeviceType::named("acme_2"));
  EXPECT_EQ(acme.name(), "acme");
}

TEST(DeviceTypeTest, OtherTextIsRefusedWithWhatWasReceived) {
  for (const std::string& name :
       {std::string(), std::string("Cuda"), std::string("a-b"), std::string("a b"),
        std::string(33, 'x'), std::string("caf\xc3\xa9")}) {
    const absl::Status status = DeviceType::named(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(message_of(status), HasSubstr("\"" + name + "\""));
  }
  EXPECT_TRUE(DeviceType::named(std::string(32, 'x')).ok());
}

// Threads that intern the same names at once must agree on every id, and each name must read back
// while others are being added.
TEST(DeviceTypeTest, InterningFromManyThreadsGivesOneIdAName) {
  constexpr int kThreads = 8;
  constexpr int kNames = 40;
  std::vector<std::vector<DeviceType>> seen(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : seen) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kNames; ++i) {
        const std::string name = "threaded_" + std::to_string(i);
        const auto type = DeviceType::named(name);
        ASSERT_TRUE(type.ok());
        ASSERT_EQ(type->name(), name);
        mine.push_back(*type);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : seen) EXPECT_EQ(mine, seen[0]);
}

// In a process of its own, because nothing that is interned goes away.
void fill_the_table() {
  const DeviceType first = *DeviceType::named("first_of_all");
  absl::Status status;
  for (int i = 0; i < 251 && status.ok(); ++i) {
    status = DeviceType::named("fill_" + std::to_string(i)).status();
  }
  std::fprintf(stderr, "%s", status.ToString().c_str());
  std::exit(first.name() == "first_of_all" && *DeviceType::named("first_of_all") == first ? 0 : 1);
}

TEST(DeviceTypeDeathTest, TableThatIsFullRefusesNewNamesAndKeepsOldOnes) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(fill_the_table(), ::testing::ExitedWithCode(0),
              "RESOURCE_EXHAUSTED.*at most 250 names.*fill_");
}

TEST(DeviceTest, TextAndBack) {
  for (const std::string text : {"cuda:0", "cuda:7", "cpu:0", "cuda:254"}) {
    const auto device = parse_device(text);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(to_string(*device), text);
  }
  EXPECT_EQ(*parse_device("cuda"), Device{});
  EXPECT_EQ(parse_device("cpu")->type, DeviceType::cpu());
}

TEST(DeviceTest, WrongTextIsRefusedWithWhatWasReceived) {
  for (const std::string text :
       {"", ":", ":0", "cuda:", "cuda:x", "cuda:255", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:1 ",
        "cuda:01", "cuda:0:1", "CUDA:0", "cuda:99999999999999999999"}) {
    const absl::Status status = parse_device(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(message_of(status), HasSubstr("got \"" + text + "\""));
  }
}

TEST(DeviceFactsTest, TextHoldsEveryFact) {
  const DeviceFacts gpu{.arch = 90, .sm_count = 132, .smem_budget = 232448, .calibration = "h200"};
  EXPECT_THAT(to_string(gpu),
              AllOf(HasSubstr("90"), HasSubstr("132"), HasSubstr("232448"), HasSubstr("h200")));
  const DeviceFacts cpu{.sm_count = 8, .calibration = "x86-64-v3"};
  EXPECT_THAT(to_string(cpu), AllOf(HasSubstr("8"), HasSubstr("x86-64-v3")));
}

}  // namespace
}  // namespace kiln
