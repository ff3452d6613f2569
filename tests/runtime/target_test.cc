// Targets: who serves an op instance, when that is settled and undone.
// Cases of the reference's section on replacing a whole op are named after its rules.
#include "tests/runtime/target_fixture.h"

#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using enum absl::StatusCode;

TEST_F(TargetTest, WithoutAClaimTheInTreeKernelsServe) {
  add_target("acme", 10, [](const Device& device) { return device.index == 7; });
  auto op = make_op();
  EXPECT_EQ(op->serving_target(), std::nullopt) << "nothing before a call";
  EXPECT_EQ(*run(*op), 1);
  EXPECT_EQ(op->serving_target(), "builtin");
  EXPECT_THAT(log.builds(), IsEmpty());
}

TEST_F(TargetTest, ADetectorThatClaimsTheCallsDeviceServes) {
  std::vector<Device> asked;
  add_target("acme", 10, [&](const Device& device) {
    asked.push_back(device);
    return device.index == 1;
  });
  auto op = make_op();
  EXPECT_EQ(*run(*op, 1), 10);
  EXPECT_EQ(op->serving_target(), "acme");
  EXPECT_THAT(asked, ElementsAre(Device{DeviceType::cpu(), 1}));
  EXPECT_EQ(*run(*op, 0), 10) << "a settled target serves every call, also on another device";
  EXPECT_THAT(asked, SizeIs(1)) << "detectors are asked once";
}

TEST_F(TargetTest, TheConstructorsTargetComesBeforeTheDefaultAndTheDefaultBeforeDetectors) {
  add_target("acme", 10);
  add_target("other", 20, [](const Device&) { return false; });
  add_target("third", 30, [](const Device&) { return false; });
  ASSERT_THAT(toy.runtime.set_default_target("other"), is_ok());
  EXPECT_EQ(toy.runtime.default_target(), "other");
  EXPECT_EQ(*run(*make_op()), 20);
  EXPECT_EQ(*run(*make_op({.target = "third"})), 30);
  ASSERT_THAT(toy.runtime.set_default_target(""), is_ok());
  EXPECT_EQ(*run(*make_op()), 10);
}

TEST_F(TargetTest, BuiltinForcesTheInTreeKernels) {
  add_target("acme", 10);
  EXPECT_EQ(*run(*make_op({.target = std::string(kBuiltin)})), 1);
  ASSERT_THAT(toy.runtime.set_default_target(std::string(kBuiltin)), is_ok());
  auto op = make_op();
  EXPECT_EQ(*run(*op), 1);
  EXPECT_EQ(op->serving_target(), "builtin");
}

TEST_F(TargetTest, ADefaultReachesInstancesThatHaveNotSettled) {
  add_target("acme", 10, [](const Device&) { return false; });
  auto settled = make_op(), open = make_op();
  ASSERT_EQ(*run(*settled), 1);
  ASSERT_THAT(toy.runtime.set_default_target("acme"), is_ok());
  EXPECT_EQ(*run(*settled), 1);
  EXPECT_EQ(*run(*open), 10);
}

TEST_F(TargetTest, SeveralClaimsAreAmbiguousAndSettleNothing) {
  add_target("acme", 10);
  add_target("other", 20);
  auto op = make_op();
  const absl::Status status = run(*op).status();
  EXPECT_THAT(status, status_is(kFailedPrecondition,
                                AllOf(HasSubstr("AmbiguousTarget"), HasSubstr("acme, other"),
                                      HasSubstr("cpu:0"), HasSubstr("ToyFwdOp"))));
  EXPECT_TRUE(is_ambiguous_target(status));
  EXPECT_EQ(op->serving_target(), std::nullopt);
  ASSERT_THAT(toy.runtime.set_default_target("other"), is_ok());
  EXPECT_EQ(*run(*op), 20) << "the user chose";
}

TEST_F(TargetTest, AnUnknownTargetListsThoseThereAre) {
  add_target("acme", 10);
  auto op = make_op({.target = "acne"});
  const absl::Status status = run(*op).status();
  EXPECT_THAT(status, status_is(kNotFound, AllOf(HasSubstr("UnknownTarget"), HasSubstr("acne"),
                                                 HasSubstr("known targets: acme"))));
  EXPECT_TRUE(is_unknown_target(status));
  const absl::Status set = toy.runtime.set_default_target("acne");
  EXPECT_TRUE(is_unknown_target(set)) << set;
  EXPECT_EQ(toy.runtime.default_target(), "");
  EXPECT_THAT(toy.runtime.registered_targets(), ElementsAre("acme"));
}

TEST_F(TargetTest, ATargetWithoutABuilderForTheOpDoesNotFallBack) {
  ASSERT_THAT(detect("acme", [](const Device&) { return true; }), is_ok());
  auto op = make_op();
  const absl::Status status = run(*op).status();
  EXPECT_THAT(status, status_is(kUnimplemented,
                                AllOf(HasSubstr("acme"), HasSubstr("has no builder for this op"),
                                      HasSubstr("builtin"))));
  EXPECT_TRUE(is_op_not_available(status));
  EXPECT_EQ(op->serving_target(), std::nullopt);
}

// --- settling, and undoing it
// ---------------------------------------------------------------------------------------

TEST_F(TargetTest, AFailedFirstCallUndoesTheChoiceAndWhatItBuilt) {
  add_target("acme", 10);
  log.run_status = absl::UnavailableError("the card is busy");
  auto op = make_op();
  EXPECT_THAT(run(*op), status_is(kUnavailable, HasSubstr("the card is busy")));
  EXPECT_EQ(op->serving_target(), std::nullopt);
  EXPECT_THAT(op->built_entries("toy_fwd"), IsEmpty());
  EXPECT_THAT(log.builds(), SizeIs(1));
  EXPECT_EQ(log.alive, 0) << "what it built is gone";
  log.run_status = absl::OkStatus();
  ASSERT_THAT(toy.runtime.set_default_target(std::string(kBuiltin)), is_ok());
  EXPECT_EQ(*run(*op), 1) << "the next call settles anew";
}

TEST_F(TargetTest, AFailureAfterSettlingChangesNothing) {
  add_target("acme", 10);
  auto op = make_op();
  ASSERT_EQ(*run(*op), 10);
  log.run_status = absl::UnavailableError("the card is busy");
  EXPECT_THAT(run(*op), status_is(kUnavailable));
  EXPECT_EQ(op->serving_target(), "acme");
  EXPECT_EQ(log.alive, 1);
}

TEST_F(TargetTest, AFailedInTreeCallSettlesNothingEither) {
  auto op = make_op();
  std::vector<float> x(3, 1), y(3);
  Tensor wide = tensor(x), out = tensor(y);
  wide.dtype = out.dtype = DType::float64;  // ToyPlain refuses it
  EXPECT_THAT(op->forward(toy_stream(), wide, out), status_is(kUnimplemented));
  EXPECT_EQ(op->serving_target(), std::nullopt);
}

TEST_F(TargetTest, TwoFirstCallsAtOnceSettleOnce) {
  std::atomic<int> asked{0};
  add_target("acme", 10, [&](const Device&) {
    ++asked;
    return true;
  });
  for (int round = 0; round < 20; ++round) {
    auto op = make_op();
    asked = 0;
    log.clear();
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < 16; ++t) {
      threads.emplace_back([&] {
        const auto got = run(*op);
        if (got.ok() && *got == 10) ++right;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 16);
    EXPECT_EQ(asked, 1);
    EXPECT_THAT(log.builds(), SizeIs(1)) << "one kernel for one set of specs";
  }
}

TEST_F(TargetTest, ManyThreadsWithManySpecsBuildEachOnceAndDoNotWaitForAnothersBuild) {
  add_target("acme", 10);
  auto op = make_op();
  ASSERT_THAT(run(*op), is_ok());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (std::size_t n = 1; n <= 20; ++n) {
        const auto got = run(*op, 0, n);
        if (!got.ok() || *got != 10) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(log.builds(), SizeIs(20));

  // A build that waits for a call with other specs to end would hang if builds excluded calls.
  log.while_building = [&] { EXPECT_EQ(*run(*op, 0, 3), 10); };
  EXPECT_EQ(*run(*op, 0, 21), 10);
}

TEST_F(TargetTest, CallsWhoseWrittenTensorsAreAllEmptySettleNothing) {
  add_target("acme", 10);
  auto op = make_op();
  std::vector<float> none;
  EXPECT_THAT(op->forward(toy_stream(), tensor(none), tensor(none)), is_ok());
  EXPECT_EQ(op->serving_target(), std::nullopt);
  EXPECT_THAT(log.builds(), IsEmpty());
  // An unknown target is not looked for, either; the checks run all the same.
  auto lost = make_op({.target = "nowhere"});
  EXPECT_THAT(lost->forward(toy_stream(), tensor(none), tensor(none)), is_ok());
  Tensor wrong = tensor(none);
  wrong.dtype = DType::int8;
  EXPECT_THAT(lost->forward(toy_stream(), wrong, tensor(none)), status_is(kInvalidArgument));
  // A settled target is not run for them.
  ASSERT_EQ(*run(*op), 10);
  EXPECT_THAT(op->forward(toy_stream(), tensor(none), tensor(none)), is_ok());
  EXPECT_EQ(log.runs(), 1u);
}

}  // namespace
}  // namespace kiln::testing
