// Dispatch through a real op: what is asked when, what is built how often, and every error at its
// moment.
#include <kiln/log.h>

#include "tests/support/status_matchers.h"
#include "tests/support/toy_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using enum absl::StatusCode;

std::atomic<int> refusals_asked{0};
std::atomic<int> built{0};

// The base of a small line of classes, as a family would have it.
class ToyWide : public ToyKernel {
 public:
  static Refusal refusal(const ToyCall& call) {
    ++refusals_asked;
    if (call.n < 0) return refuse("serves lengths of at least 0, got ", call.n);
    return serves;
  }
  static Entry<ToyWide> entry_for(const ToyCall& call) { return Entry<ToyWide>(call.dtype); }
  explicit ToyWide(DType) { ++built; }
};

class ToyShort final : public ToyWide {
 public:
  static constexpr auto preferred_over = keys("toy_wide");
  static constexpr auto supported_archs = archs(90);
  static Refusal refusal(const ToyCall& call) {
    if (call.n > 256) return refuse("serves lengths of at most 256, got ", call.n);
    return ToyWide::refusal(call);
  }
  static Entry<ToyShort> entry_for(const ToyCall& call) { return Entry<ToyShort>(call.n); }
  explicit ToyShort(std::int64_t) : ToyWide(DType::float32) {}
};

class ToyGeneral final : public ToyKernel {
 public:
  static constexpr bool general = true;
  explicit ToyGeneral(const ToyCall&) {}
};

ToyCall at(std::int64_t n, int index = 0) {
  return {.n = n, .where = {Device{DeviceType::cpu(), static_cast<std::uint8_t>(index)}}};
}
ToyCall stating(std::int64_t n, int arch) {
  ToyCall call = at(n);
  call.where.arch = arch;
  return call;
}

class DispatchTest : public ::testing::Test {
 protected:
  DispatchTest() {
    EXPECT_THAT(toy.failed, is_ok());
    EXPECT_THAT(toy.add<ToyWide>("toy_wide"), is_ok());
    EXPECT_THAT(toy.add<ToyShort>("toy_short"), is_ok());
    EXPECT_THAT(toy.add<ToyGeneral>("toy_general"), is_ok());
    auto made = toy.op();
    EXPECT_THAT(made, is_ok());
    op = *std::move(made);
    refusals_asked = 0;
    built = 0;
  }
  const ToyFwdInterface* entry(const ToyCall& call) {
    auto found = op->kernel_for<ToyFwdInterface>(call);
    EXPECT_THAT(found, is_ok());
    return found.ok() ? *found : nullptr;
  }
  ToyRuntime toy;
  std::unique_ptr<ToyFwdOp> op;
};

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

// --- errors of construction
// -----------------------------------------------------------------------------------------

struct NoKernel : ToyFwdInterface {
  absl::Status forward(const Stream&, const Tensor&, const Tensor&) const override {
    return absl::OkStatus();
  }
};
struct OtherForward : Kernel, ToyFwdInterface {
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
  absl::Status forward(const Stream&) const { return absl::OkStatus(); }
};
class LoneKernel : public Kernel {
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
};
class ToyGeneralToo final : public ToyKernel {
 public:
  static constexpr bool general = true;
  explicit ToyGeneralToo(const ToyCall&) {}
};

class ToyOther final : public Kernel, public ToyOtherFwdInterface {
 public:
  explicit ToyOther(const ToyOtherCall&) {}
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
  absl::Status forward(const Stream&) const override { return absl::OkStatus(); }
};

absl::Status construct(const std::vector<std::pair<std::string, KernelType>>& types) {
  ToyRuntime toy;
  for (const auto& [key, type] : types) EXPECT_THAT(toy.add(key, type, "/opt/acme.so"), is_ok());
  return toy.op().status();
}

TEST(DispatchConstructionTest, Table5Row1DoesNotImplementTheInterface) {
  EXPECT_THAT(
      construct({{"no_kernel", kernel_type<NoKernel>()}}),
      status_is(kInvalidArgument, AllOf(HasSubstr("does not implement ToyFwdInterface"),
                                        HasSubstr("no_kernel (NoKernel, from /opt/acme.so)"))));
}

TEST(DispatchConstructionTest, Table5Row2ForwardDoesNotTakeTheInterfacesArguments) {
  EXPECT_THAT(
      construct({{"other_forward", kernel_type<OtherForward>()}}),
      status_is(kInvalidArgument, HasSubstr("forward does not take ToyFwdInterface's arguments")));
  KernelType stale = kernel_type<ToyGeneral>();
  stale.contract ^= 1;  // what a plugin has that was built against another version of the interface
  EXPECT_THAT(construct({{"stale", stale}}),
              status_is(kInvalidArgument,
                        AllOf(HasSubstr("forward does not take ToyFwdInterface's arguments"),
                              HasSubstr("another version of the interface"))));
}

TEST(DispatchConstructionTest, Table5Row3HasMoreThanOneGeneralImplementation) {
  EXPECT_THAT(
      construct({{"g1", kernel_type<ToyGeneral>()}, {"g2", kernel_type<ToyGeneralToo>()}}),
      status_is(kInvalidArgument,
                AllOf(HasSubstr("has more than one general implementation"), HasSubstr("g1, g2"))));
}

TEST(DispatchConstructionTest, Table5Row4PreferencesFormACycle) {
  KernelType a = kernel_type<ToyWide>(), b = a, c = a;
  a.preferred_over = {"b"};
  b.preferred_over = {"c"};
  c.preferred_over = {"a"};
  EXPECT_THAT(construct({{"a", a}, {"b", b}, {"c", c}}),
              status_is(kInvalidArgument, HasSubstr("preferences form a cycle through a, b, c")));
  a.preferred_over = {"a"};
  EXPECT_THAT(construct({{"a", a}}),
              status_is(kInvalidArgument, HasSubstr("preferences form a cycle through a")));
}

TEST(DispatchConstructionTest, Table5Row5KeysImplementNoneOfItsKernelInterfaces) {
  EXPECT_THAT(
      construct({{"lone", kernel_type<LoneKernel>()}}),
      status_is(kInvalidArgument, HasSubstr("keys implement none of its kernel interfaces")));
}

TEST(DispatchConstructionTest, AGeneralImplementationDeclaresNoPreference) {
  KernelType type = kernel_type<ToyGeneral>();
  type.preferred_over = {"toy_wide"};
  EXPECT_THAT(
      construct({{"toy_wide", kernel_type<ToyWide>()}, {"g", type}}),
      status_is(kInvalidArgument, HasSubstr("a general implementation declares no preference")));
}

TEST(DispatchConstructionTest, PreferredOverNamesAKeyOfTheInterface) {
  KernelType type = kernel_type<ToyWide>();
  type.preferred_over = {"toy_typo"};
  ToyRuntime tree;
  ASSERT_THAT(tree.add("toy_wide", type, "in-tree"), is_ok());
  EXPECT_THAT(tree.op(), status_is(kInvalidArgument,
                                   AllOf(HasSubstr("preferred_over names no key of the interface"),
                                         HasSubstr("got toy_typo"))));
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  EXPECT_THAT(construct({{"toy_wide", type}}), is_ok())
      << "a backend may know keys of another tree";
  set_log_sink({});
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("toy_typo"), HasSubstr("/opt/acme.so"))));
  // A key of another interface is an error from anybody.
  type.preferred_over = {"toy_other"};
  EXPECT_THAT(construct({{"toy_wide", type}, {"toy_other", kernel_type<ToyOther>()}}),
              status_is(kInvalidArgument, HasSubstr("ToyOtherFwdInterface")));
}

TEST(DispatchConstructionTest, OneKeyTwiceIsABackendErrorAndAnInTreeKeyIsReused) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<ToyWide>("toy_wide", "in-tree"), is_ok());
  ASSERT_THAT(toy.add<ToyGeneral>("extra"), is_ok());
  const absl::Status twice = toy.add<ToyGeneral>("extra");
  EXPECT_THAT(twice, status_is(kAlreadyExists, HasSubstr("extra")));
  EXPECT_TRUE(is_backend_error(twice));
  ASSERT_THAT(toy.add<ToyWide>("toy_wide"), is_ok()) << "found when the op is constructed";
  EXPECT_THAT(toy.op(), status_is(kInvalidArgument, HasSubstr("reuse keys it has")));
}

TEST(DispatchConstructionTest, ARegistrationReachesOpsConstructedAfterIt) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<ToyWide>("toy_wide"), is_ok());
  auto before = toy.op();
  ASSERT_THAT(toy.add<ToyShort>("toy_short"), is_ok());
  auto after = toy.op();
  EXPECT_EQ(*(*before)->key_for<ToyFwdInterface>(stating(10, 90)), "toy_wide");
  EXPECT_EQ(*(*after)->key_for<ToyFwdInterface>(stating(10, 90)), "toy_short");
}

// --- whole calls
// ----------------------------------------------------------------------------------------------------

class OpCallTest : public DispatchTest {
 protected:
  Tensor tensor(std::vector<float>& data, int index = 0) {
    return Tensor::contiguous(data.data(), {DeviceType::cpu(), static_cast<std::uint8_t>(index)},
                              DType::float32, {static_cast<std::int64_t>(data.size())});
  }
  std::vector<float> x = {1, 2, 3}, y = {0, 0, 0};
};

TEST_F(OpCallTest, ACallWithKnownTensorsIsOneLookup) {
  ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  EXPECT_THAT(y, ElementsAre(2, 3, 4));
  const auto selections = toy.runtime.stats().selections;
  const int asked = refusals_asked;
  for (int i = 0; i < 100; ++i)
    ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  EXPECT_EQ(toy.runtime.stats().selections, selections);
  EXPECT_EQ(refusals_asked, asked);
  EXPECT_EQ(op->serving_target(), "builtin");
}

TEST_F(OpCallTest, BadTensorsAreRefusedWithTheValueAlsoWhenTheGoodOnesAreKnown) {
  ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  Tensor bad = tensor(x);
  bad.dtype = DType::float16;
  EXPECT_THAT(op->forward(toy_stream(), bad, tensor(y)),
              status_is(kInvalidArgument, HasSubstr("float16")));
  bad = tensor(x);
  bad.data = nullptr;
  EXPECT_THAT(op->forward(toy_stream(), bad, tensor(y)),
              status_is(kInvalidArgument, HasSubstr("null pointer")));
  EXPECT_THAT(op->forward(toy_stream(), tensor(x, 1), tensor(y)),
              status_is(kInvalidArgument, HasSubstr("cpu:1")));
  EXPECT_THAT(op->forward(toy_stream(1), tensor(x), tensor(y)),
              status_is(kInvalidArgument, HasSubstr("cpu:1")));
  bad = tensor(x);
  bad.shape = {3, 1};
  bad.strides = {1, 1};
  EXPECT_THAT(op->forward(toy_stream(), bad, tensor(y)),
              status_is(kInvalidArgument, HasSubstr("[3, 1]")));
  const Tensor good = tensor(x);
  const Tensor* one[] = {&good};
  EXPECT_THAT(op->call(toy_stream(), one, one),
              status_is(kInvalidArgument, HasSubstr("got 1 and 1")));
}

TEST_F(OpCallTest, AnEmptyCallPassesTheChecksRunsNothingAndSettlesNothing) {
  std::vector<float> none;
  EXPECT_THAT(op->forward(toy_stream(), tensor(none), tensor(none)), is_ok());
  EXPECT_EQ(op->serving_target(), std::nullopt);
  EXPECT_EQ(built, 0);
  Tensor wrong = tensor(none);
  wrong.dtype = DType::int8;
  EXPECT_THAT(op->forward(toy_stream(), wrong, tensor(none)),
              status_is(kInvalidArgument, HasSubstr("int8")));
}

TEST_F(OpCallTest, TheLastCallIsKeptOnlyWhenAskedForAndAFailedOneDoesNotReplaceIt) {
  ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  EXPECT_EQ(op->last_call(), std::nullopt);
  auto recording = toy.op(OpOptions{.record_calls = true});
  ASSERT_THAT(recording, is_ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT((*recording)->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
    ASSERT_TRUE((*recording)->last_call());
    EXPECT_THAT((*recording)->last_call()->keys, ElementsAre("toy_short"));
  }
  Tensor bad = tensor(x);
  bad.data = nullptr;
  EXPECT_THAT((*recording)->forward(toy_stream(), bad, tensor(y)), Not(is_ok()));
  EXPECT_THAT((*recording)->last_call()->keys, ElementsAre("toy_short"));
  EXPECT_EQ((*recording)->roofline()->bytes, 24);
}

TEST_F(OpCallTest, AMissDuringCaptureIsAnErrorAndAHitIsNot) {
  toy.support->capturing = true;
  EXPECT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)),
              status_is(kFailedPrecondition, AllOf(HasSubstr("captured"), HasSubstr("warm"))));
  toy.support->capturing = false;
  ASSERT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  toy.support->capturing = true;
  EXPECT_THAT(op->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
}

class ToyThrowing final : public ToyKernel {
 public:
  explicit ToyThrowing(const ToyCall&) {}
  absl::Status forward(const Stream&, const Tensor&, const Tensor&) const override {
    if (throws) throw 42;  // not even a std::exception
    return absl::OkStatus();
  }
  static inline std::atomic<bool> throws{false};
};

TEST_F(OpCallTest, AKernelThatThrowsFailsTheCallAlsoOnAHit) {
  ToyRuntime other;
  ASSERT_THAT(other.add<ToyThrowing>("toy_throwing"), is_ok());
  auto throwing = other.op();
  ASSERT_THAT(throwing, is_ok());
  ToyThrowing::throws = true;
  EXPECT_THAT((*throwing)->forward(toy_stream(), tensor(x), tensor(y)),
              status_is(kInternal, HasSubstr("ToyFwdOp")));
  EXPECT_EQ((*throwing)->serving_target(), std::nullopt);
  ToyThrowing::throws = false;
  EXPECT_THAT((*throwing)->forward(toy_stream(), tensor(x), tensor(y)), is_ok());
  ToyThrowing::throws = true;
  EXPECT_THAT((*throwing)->forward(toy_stream(), tensor(x), tensor(y)), status_is(kInternal));
}

TEST_F(OpCallTest, TheAllocatingFormMakesItsOutputs) {
  const Tensor in = tensor(x);
  const Tensor* inputs[] = {&in, nullptr};
  auto outputs = op->call_allocating(toy_stream(), inputs);
  ASSERT_THAT(outputs, is_ok());
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ(static_cast<const float*>((*outputs)[0].tensor().data)[2], 4);
}

}  // namespace
}  // namespace kiln::testing
