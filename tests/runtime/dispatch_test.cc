// Dispatch through a real op: what is asked when, what is built how often, and every error of a
// call at its moment.
#include "tests/runtime/dispatch_fixture.h"

#include <gmock/gmock.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using enum absl::StatusCode;

TEST_F(DispatchTest, AHitAsksNoImplementationAndReadsNoDevice) {
  const ToyFwdInterface* first = entry(at(100));
  const int asked = refusals_asked, facts = toy.support->facts_read;
  EXPECT_GT(asked, 0);
  EXPECT_EQ(facts, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(entry(at(100)), first);
  EXPECT_EQ(refusals_asked, asked);
  EXPECT_EQ(toy.support->facts_read, facts);
  EXPECT_EQ(toy.runtime.stats().selections, 1);
}

TEST_F(DispatchTest, CallsOfOneIdentityShareOneEntry) {
  EXPECT_EQ(entry(at(1000)), entry(at(2000))) << "toy_wide's identity is the dtype alone";
  EXPECT_NE(entry(at(100)), entry(at(101))) << "toy_short's identity is n";
  EXPECT_EQ(built, 3);
  EXPECT_EQ(op->built_entries("toy_fwd").size(), 3u);
  EXPECT_EQ(op->iter_kernels().size(), 3u);
}

TEST_F(DispatchTest, CardsOfOneModelShareAnEntryAndOthersDoNot) {
  ToyRuntime twins({}, {{90, 132, 1, "h200"}, {90, 132, 1, "h200"}, {80, 108, 1, "a100"}});
  ASSERT_THAT(twins.add<ToyWide>("toy_wide"), is_ok());
  auto pair = twins.op();
  ASSERT_THAT(pair, is_ok());
  const auto on = [&](int index) { return *(*pair)->kernel_for<ToyFwdInterface>(at(1000, index)); };
  EXPECT_EQ(on(0), on(1));
  EXPECT_NE(on(0), on(2));
}

TEST_F(DispatchTest, KeyForAnswersForStatedFactsWhateverTheMachine) {
  EXPECT_EQ(*op->key_for<ToyFwdInterface>(stating(100, 90)), "toy_short");
  EXPECT_EQ(*op->key_for<ToyFwdInterface>(stating(100, 80)), "toy_wide")
      << "toy_short is not available on 80";
  EXPECT_EQ(*op->key_for<ToyFwdInterface>(stating(256, 90)), "toy_short");
  EXPECT_EQ(*op->key_for<ToyFwdInterface>(stating(257, 90)), "toy_wide");
  EXPECT_EQ(*op->key_for<ToyFwdInterface>(stating(-1, 90)), "toy_general")
      << "serves what no other serves";
  EXPECT_EQ(*op->key_for("toy_fwd", stating(257, 90)), "toy_wide");
  EXPECT_EQ(toy.support->facts_read, 0);
  EXPECT_EQ(built, 0) << "key_for builds nothing";
}

TEST_F(DispatchTest, ManyThreadsThatMissAtOnceBuildOnce) {
  std::vector<std::thread> threads;
  std::vector<const ToyFwdInterface*> got(16);
  for (std::size_t t = 0; t < got.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 200; ++round) {
        for (std::int64_t n : {std::int64_t{1000}, std::int64_t{round % 20}}) {
          auto found = op->kernel_for<ToyFwdInterface>(at(n));
          ASSERT_THAT(found, is_ok());
          if (n == 1000) got[t] = *found;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto* one : got) EXPECT_EQ(one, got[0]);
  EXPECT_EQ(built, 21);
}

std::atomic<int> failing_builds{0};
std::atomic<bool> build_fails{true};
class ToyFailing final : public ToyKernel {
 public:
  static Entry<ToyFailing> entry_for(const ToyCall& call) { return Entry<ToyFailing>(call.n); }
  explicit ToyFailing(std::int64_t) {
    ++failing_builds;
    if (build_fails) throw std::runtime_error("out of luck");
  }
};

TEST(DispatchBuildTest, AFailedBuildIsNotRememberedAndIsTriedAgain) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<ToyFailing>("toy_failing"), is_ok());
  auto op = toy.op();
  ASSERT_THAT(op, is_ok());
  build_fails = true;
  EXPECT_THAT((*op)->kernel_for<ToyFwdInterface>(at(1)),
              status_is(kInternal, HasSubstr("out of luck")));
  EXPECT_THAT((*op)->kernel_for<ToyFwdInterface>(at(1)),
              status_is(kInternal, HasSubstr("toy_failing")));
  EXPECT_EQ(failing_builds, 2);
  build_fails = false;
  EXPECT_THAT((*op)->kernel_for<ToyFwdInterface>(at(1)), is_ok());
  EXPECT_EQ((*op)->built_entries("toy_fwd").size(), 1u);
}

// --- errors of a call, by the rows of the reference's table 5
// -------------------------------------------------------

TEST_F(DispatchTest, Table5Row6InTreeKernelsDoNotRunOnTheDeviceType) {
  ToyCall call{.n = 1};
  call.where.device = Device{*DeviceType::named("acme"), 0};
  const auto found = op->kernel_for<ToyFwdInterface>(call);
  EXPECT_THAT(found,
              status_is(kUnimplemented, AllOf(HasSubstr("in-tree kernels do not run on acme"),
                                              HasSubstr("known targets: none"))));
  EXPECT_TRUE(is_op_not_available(found.status()));
}

TEST(DispatchErrorTest, Table5Row7NoImplementationServesThisCallListsEachReason) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<ToyWide>("toy_wide"), is_ok());
  ASSERT_THAT(toy.add<ToyShort>("toy_short"), is_ok());
  auto op = toy.op();
  const auto key = (*op)->key_for<ToyFwdInterface>(stating(-5, 80));
  EXPECT_THAT(
      key,
      status_is(kUnimplemented,
                AllOf(HasSubstr("no implementation serves this call"), HasSubstr("ToyCall n=-5"),
                      HasSubstr("toy_wide (test plugin): serves lengths of at least 0, got -5"),
                      HasSubstr("toy_short (test plugin): supports archs 90, got 80"))));
  EXPECT_THAT(message_of(key.status()), Not(HasSubstr("mask"))) << "a field nobody set";
}

TEST(DispatchErrorTest, Table5Row8DispatchIsAmbiguousNamesAllAndWhereTheyComeFrom) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<ToyWide>("toy_wide", "/opt/one.so"), is_ok());
  ASSERT_THAT(toy.add("toy_twin", kernel_type<ToyWide>(), "/opt/two.so"), is_ok());
  auto op = toy.op();
  EXPECT_THAT((*op)->key_for<ToyFwdInterface>(stating(9, 90)),
              status_is(kUnimplemented, AllOf(HasSubstr("dispatch is ambiguous"),
                                              HasSubstr("toy_wide (/opt/one.so)"),
                                              HasSubstr("toy_twin (/opt/two.so)"))));
  // A user settles it without touching either.
  for (const OpOptions& options :
       {OpOptions{.only = {"toy_twin"}}, OpOptions{.exclude = {"toy_wide"}},
        OpOptions{.prefer = {"toy_twin"}}}) {
    auto settled = toy.op(options);
    ASSERT_THAT(settled, is_ok());
    EXPECT_EQ(*(*settled)->key_for<ToyFwdInterface>(stating(9, 90)), "toy_twin");
  }
  EXPECT_THAT(toy.op(OpOptions{.only = {"toy_typo"}}),
              status_is(kNotFound, HasSubstr("got toy_typo")));
}

TEST(DispatchErrorTest, ListsThatLeaveNoImplementationAreNamed) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<ToyWide>("toy_wide"), is_ok());
  const auto op = toy.op(OpOptions{.only = {"toy_wide"}, .exclude = {"toy_wide"}});
  ASSERT_THAT(op, is_ok());
  EXPECT_THAT(
      (*op)->key_for<ToyFwdInterface>(stating(9, 90)),
      status_is(kUnimplemented, HasSubstr("only and exclude leave no implementation of toy_fwd")));
}

TEST_F(DispatchTest, Table5Row9KernelForTakesTheInterfacesCallSpec) {
  EXPECT_THAT(op->kernel_for("toy_fwd", CallRef(ToyOtherCall{})),
              status_is(kInvalidArgument, AllOf(HasSubstr("takes a ToyCall call spec"),
                                                HasSubstr("got ToyOtherCall"))));
  EXPECT_THAT(
      op->key_for("toy_bwd", CallRef(ToyCall{})),
      status_is(kNotFound, AllOf(HasSubstr("toy_bwd"), HasSubstr("toy_fwd, toy_other_fwd"))));
}

TEST_F(DispatchTest, Table5Row10ANanCannotKeyADispatchCache) {
  ToyOtherCall call{.scale = std::numeric_limits<double>::quiet_NaN()};
  call.where.device = {DeviceType::cpu(), 0};
  EXPECT_THAT(op->kernel_for("toy_other_fwd", CallRef(call)),
              status_is(kInvalidArgument,
                        AllOf(HasSubstr("cannot key a dispatch cache"), HasSubstr("scale"))));
}

TEST_F(DispatchTest, Table5Row11KernelForRefusesStatedFacts) {
  ASSERT_NE(entry(at(100)), nullptr);
  EXPECT_THAT(op->kernel_for<ToyFwdInterface>(stating(100, 90)),
              status_is(kInvalidArgument, HasSubstr("this call spec states ['arch']")))
      << "also where the same call is a hit";
}

}  // namespace
}  // namespace kiln::testing
