// Targets: who serves an op instance, when that is settled and undone, and what a target is given.
// Cases of the reference's section on replacing a whole op are named after its rules.
#include <kiln/log.h>

#include "tests/support/status_matchers.h"
#include "tests/support/toy_op.h"
#include "tests/support/toy_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using enum absl::StatusCode;

class TargetTest : public ::testing::Test {
 protected:
  TargetTest() {
    EXPECT_THAT(toy.failed, is_ok());
    Registry registry("in-tree");
    registry.add_op<ToyWidestFwdOp>();
    registry.add_op<ToyTwiceFwdOp>();
    registry.register_kernel_type("ToyFwdOp", "toy_plain", kernel_type<ToyPlain>());
    EXPECT_THAT(toy.runtime.commit(std::move(registry)), is_ok());
  }
  ~TargetTest() override { set_log_sink({}); }

  absl::Status detect(const std::string& target, Detect detect) {
    Registry registry("/opt/" + target + ".so");
    registry.register_detector(target, std::move(detect));
    return toy.runtime.commit(std::move(registry));
  }
  absl::Status build_with(const std::string& op, const std::string& target,
                          BuildTargetKernel build) {
    Registry registry("/opt/" + target + ".so");
    registry.register_kernel_builder(op, target, std::move(build));
    return toy.runtime.commit(std::move(registry));
  }
  // Target `name`, which claims `claims` and adds `amount` in ToyFwdOp.
  void add_target(
      const std::string& name, float amount, Detect claims = [](const Device&) { return true; }) {
    ASSERT_THAT(detect(name, std::move(claims)), is_ok());
    ASSERT_THAT(build_with("ToyFwdOp", name, log.builder(amount)), is_ok());
  }
  std::unique_ptr<ToyFwdOp> make_op(OpOptions options = {}) {
    auto made = toy.op(std::move(options));
    EXPECT_THAT(made, is_ok());
    return *std::move(made);
  }
  template <class OpT>
  std::unique_ptr<OpT> make(OpOptions options = {}) {
    options.runtime = &toy.runtime;
    auto made = OpT::create_from({}, options);
    EXPECT_THAT(made, is_ok());
    return *std::move(made);
  }
  Tensor tensor(std::vector<float>& data, int index = 0) {
    return Tensor::contiguous(data.data(), {DeviceType::cpu(), static_cast<std::uint8_t>(index)},
                              DType::float32, {static_cast<std::int64_t>(data.size())});
  }
  // x + what serves the call, or its status.
  absl::StatusOr<float> run(ToyFwdOp& op, int index = 0, std::size_t n = 3) {
    std::vector<float> x(n, 1), y(n, 0);
    KILN_RETURN_IF_ERROR(op.forward(toy_stream(index), tensor(x, index), tensor(y, index)));
    return y[0] - 1;
  }

  ToyRuntime toy;
  TargetLog log;
};

// --- who serves
// -----------------------------------------------------------------------------------------------------

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

// --- what a target is given
// -----------------------------------------------------------------------------------------

class WidestTest : public TargetTest {
 protected:
  WidestTest() {
    EXPECT_THAT(build_with("ToyWidestFwdOp", "acme", log.builder(10)), is_ok());
    op = make<ToyWidestFwdOp>({.target = "acme"});
  }
  absl::Status call(const Tensor* b, const Tensor* c, const ParamValues& execution = {}) {
    const Tensor ta = tensor(a), tacc = tensor(acc), ty = tensor(y), tz = tensor(z);
    const Tensor* inputs[] = {&ta, b, c, &tacc};
    const Tensor* outputs[] = {&ty, &tz};
    return op->call(toy_stream(), inputs, outputs, execution);
  }
  std::unique_ptr<ToyWidestFwdOp> op;
  std::vector<float> a = {1, 2, 3}, acc = {0, 0, 0}, y = {0, 0, 0}, z = {0, 0, 0};
};

TEST_F(WidestTest, AbsentOptionalsKeepTheirPlaceInTheMemory) {
  std::vector<float> data = {7, 8, 9};
  const Tensor given = tensor(data);
  ASSERT_THAT(call(&given, nullptr), is_ok());
  ASSERT_THAT(call(nullptr, &given), is_ok());
  ASSERT_THAT(call(nullptr, nullptr), is_ok());
  ASSERT_THAT(call(&given, &given), is_ok());
  ASSERT_THAT(call(&given, nullptr), is_ok()) << "known";
  EXPECT_THAT(log.builds(), ElementsAre("float32[3] float32[3] none float32[3]",
                                        "float32[3] none float32[3] float32[3]",
                                        "float32[3] none none float32[3]",
                                        "float32[3] float32[3] float32[3] float32[3]"));
  EXPECT_THAT(op->built_entries(""), SizeIs(4));
}

TEST_F(TargetTest, KernelsAreKeptByDeviceDtypeAndShape) {
  add_target("acme", 10);
  auto op = make_op();
  ASSERT_THAT(run(*op, 0, 3), is_ok());
  ASSERT_THAT(run(*op, 0, 3), is_ok());
  EXPECT_THAT(log.builds(), SizeIs(1));
  ASSERT_THAT(run(*op, 1, 3), is_ok());
  EXPECT_THAT(log.builds(), SizeIs(2)) << "another device";
  ASSERT_THAT(run(*op, 0, 4), is_ok());
  EXPECT_THAT(log.builds(), SizeIs(3)) << "another shape";
  std::vector<double> x(3), y(3);
  const Device cpu{DeviceType::cpu(), 0};
  ASSERT_THAT(op->forward(toy_stream(), Tensor::contiguous(x.data(), cpu, DType::float64, {3}),
                          Tensor::contiguous(y.data(), cpu, DType::float64, {3})),
              is_ok());
  EXPECT_THAT(log.builds(), SizeIs(4)) << "another dtype";
  auto twin = make_op();
  ASSERT_THAT(run(*twin, 0, 3), is_ok());
  EXPECT_THAT(log.builds(), SizeIs(5)) << "another op instance";
}

TEST_F(WidestTest, TheBuilderGetsParametersByNameAndDevicesOfInputs) {
  ASSERT_THAT(call(nullptr, nullptr), is_ok());
  const ParamValues params = log.params();
  const FieldValue* gain = find_param(params, "gain");
  ASSERT_NE(gain, nullptr);
  EXPECT_EQ(*gain, FieldValue(2.5)) << "the default of the signature";
}

TEST_F(WidestTest, TheKernelGetsTheCallersBuffersInOrderAndExecutionParametersByName) {
  ASSERT_THAT(call(nullptr, nullptr, {{"offset", FieldValue(4.0)}}), is_ok());
  EXPECT_THAT(y, ElementsAre(15, 16, 17)) << "a + amount + offset in the first output";
  EXPECT_THAT(z, ElementsAre(-1, -2, -3)) << "-a in the second";
  EXPECT_THAT(acc, ElementsAre(1, 2, 3)) << "an input that is written in place";
  ASSERT_THAT(call(nullptr, nullptr), is_ok());
  EXPECT_THAT(y, ElementsAre(11, 12, 13)) << "the default of the signature";
  EXPECT_THAT(call(nullptr, nullptr, {{"offest", FieldValue(4.0)}}),
              status_is(kInvalidArgument, HasSubstr("offest")));
  EXPECT_THAT(log.builds(), SizeIs(1)) << "execution parameters build nothing";
}

TEST_F(WidestTest, WhatATargetOnlyReadsIsContiguousEvenWhereInTreeKernelsTakeStrides) {
  std::vector<float> wide = {1, -1, 2, -1, 3, -1};
  Tensor strided = tensor(a);
  strided.data = wide.data();
  strided.strides = {2};
  const Tensor tacc = tensor(acc), ty = tensor(y), tz = tensor(z);
  const Tensor* inputs[] = {&strided, nullptr, nullptr, &tacc};
  const Tensor* outputs[] = {&ty, &tz};
  ASSERT_THAT(op->call(toy_stream(), inputs, outputs), is_ok());
  EXPECT_THAT(y, ElementsAre(11, 12, 13));
  EXPECT_EQ(toy.runtime.stats().input_copies, 1);

  auto strict = make<ToyWidestFwdOp>({.target = "acme", .strict = true});
  EXPECT_THAT(strict->call(toy_stream(), inputs, outputs),
              status_is(kInvalidArgument,
                        AllOf(HasSubstr("a must be contiguous"), HasSubstr("strides [2]"))));

  // A written input is handed over as it is only if it is contiguous where that is declared.
  Tensor torn = tensor(acc);
  torn.data = wide.data();
  torn.strides = {2};
  const Tensor ta = tensor(a);
  const Tensor* torn_inputs[] = {&ta, nullptr, nullptr, &torn};
  EXPECT_THAT(op->call(toy_stream(), torn_inputs, outputs),
              status_is(kInvalidArgument, HasSubstr("acc")));
}

// --- the target's kernel
// --------------------------------------------------------------------------------------------

TEST_F(TargetTest, RequestTuneReachesKernelsThereAreAndThoseToCome) {
  add_target("acme", 10);
  log.offers_tuning = true;
  auto op = make_op();
  ASSERT_THAT(run(*op, 0, 3), is_ok());
  EXPECT_EQ(log.tunes, 0);
  EXPECT_FALSE(op->tuning_requested());
  op->request_tune();
  EXPECT_TRUE(op->tuning_requested());
  EXPECT_EQ(log.tunes, 1);
  ASSERT_THAT(run(*op, 0, 4), is_ok());
  EXPECT_EQ(log.tunes, 2);
  op->request_tune();
  EXPECT_EQ(log.tunes, 2) << "they are tuning already";
  ASSERT_THAT(run(*make_op()), is_ok());
  EXPECT_EQ(log.tunes, 2) << "only this instance";
}

TEST_F(TargetTest, AKernelThatCannotTuneWarnsOncePerInstance) {
  add_target("acme", 10);
  std::vector<std::string> warnings;
  std::mutex mutex;
  set_log_sink([&](LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (level == LogLevel::warning) warnings.emplace_back(line);
  });
  auto op = make_op();
  op->request_tune();
  EXPECT_THAT(warnings, IsEmpty()) << "nothing is known before a target is settled";
  for (std::size_t n = 1; n < 5; ++n) ASSERT_THAT(run(*op, 0, n), is_ok());
  EXPECT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("ToyFwdOp"), HasSubstr("does not offer request_tune"))));
  auto second = make_op();
  ASSERT_THAT(run(*second), is_ok());
  second->request_tune();
  EXPECT_THAT(warnings, SizeIs(2)) << "once per instance";
}

TEST_F(TargetTest, AnInTreeInstanceIsMarkedAndServesOn) {
  auto op = make_op();
  op->request_tune();
  EXPECT_TRUE(op->tuning_requested());
  EXPECT_EQ(*run(*op), 1);
}

TEST_F(TargetTest, TheConfigOfATargetsKernelIsTheOps) {
  add_target("acme", 10);
  auto op = make_op();
  ASSERT_THAT(run(*op), is_ok());
  EXPECT_TRUE(op->kernel_config().empty());
  log.config = Config{{"tile", 64}};
  EXPECT_EQ(op->kernel_config(), (Config{{"tile", 64}}));
  const auto entries = op->built_entries("toy_fwd");
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(entries[0].key, "acme");
  EXPECT_EQ(entries[0].config, (Config{{"tile", 64}}));
  EXPECT_EQ(entries[0].identity.text(), "(cpu:0, float32[3], none)");
  EXPECT_THAT(op->iter_kernels(), IsEmpty()) << "in-tree kernels only";
}

TEST_F(TargetTest, TheLastCallNamesTheTarget) {
  add_target("acme", 10);
  auto op = make_op({.record_calls = true});
  ASSERT_THAT(run(*op), is_ok());
  ASSERT_TRUE(op->last_call());
  EXPECT_THAT(op->last_call()->keys, ElementsAre("acme"));
}

TEST_F(TargetTest, ExceptionsOfABackendAreStatusesThatNameIt) {
  add_target("acme", 10);
  auto op = make_op();
  log.run_throws = "no luck today";
  EXPECT_THAT(run(*op), status_is(kInternal, AllOf(HasSubstr("acme"), HasSubstr("no luck today"))));
  log.run_throws.reset();
  log.build_throws = "cannot build that";
  EXPECT_THAT(run(*op),
              status_is(kInternal, AllOf(HasSubstr("acme"), HasSubstr("cannot build that"))));
  log.build_throws.reset();
  log.build_makes_nothing = true;
  EXPECT_THAT(run(*op), status_is(kInternal, HasSubstr("made nothing")));
  log.build_makes_nothing = false;
  log.build_status = absl::ResourceExhaustedError("out of tiles");
  EXPECT_THAT(run(*op),
              status_is(kResourceExhausted, AllOf(HasSubstr("acme"), HasSubstr("out of tiles"))));
  log.build_status = absl::OkStatus();
  EXPECT_EQ(*run(*op), 10) << "a failed build is not remembered";
}

TEST_F(TargetTest, ExceptionsThatAreNoStdExceptionsAreStatusesToo) {
  add_target("acme", 10);
  log.throws_a_number = true;
  EXPECT_THAT(run(*make_op()), status_is(kInternal, HasSubstr("acme")));
}

TEST_F(TargetTest, ADetectorThatThrowsFailsTheCallAndSettlesNothing) {
  add_target("acme", 10, [](const Device&) -> bool { throw std::runtime_error("no such bus"); });
  auto op = make_op();
  EXPECT_THAT(run(*op), status_is(kInternal, AllOf(HasSubstr("acme"), HasSubstr("no such bus"))));
  EXPECT_EQ(op->serving_target(), std::nullopt);
  auto forced = make_op({.target = "acme"});
  EXPECT_EQ(*run(*forced), 10) << "a detector is not asked when the user has chosen";
}

// --- registration
// ---------------------------------------------------------------------------------------------------

TEST_F(TargetTest, TheSameDetectorOrBuilderTwiceIsABackendErrorThatNamesTheFirst) {
  add_target("acme", 10);
  const absl::Status detector = detect("acme", [](const Device&) { return true; });
  EXPECT_THAT(detector,
              status_is(kAlreadyExists, AllOf(HasSubstr("BackendError"), HasSubstr("acme"),
                                              HasSubstr("from /opt/acme.so"))));
  EXPECT_TRUE(is_backend_error(detector));
  const absl::Status builder = build_with("ToyFwdOp", "acme", log.builder(1));
  EXPECT_THAT(builder,
              status_is(kAlreadyExists, AllOf(HasSubstr("BackendError"), HasSubstr("ToyFwdOp"),
                                              HasSubstr("from /opt/acme.so"))));
  EXPECT_TRUE(is_backend_error(builder));
}

TEST_F(TargetTest, AnUnknownOpOrABadNameIsABackendError) {
  const absl::Status unknown = build_with("ToyFwdOpp", "acme", log.builder(1));
  EXPECT_THAT(unknown,
              status_is(kNotFound, AllOf(HasSubstr("BackendError"), HasSubstr("\"ToyFwdOpp\""))));
  EXPECT_TRUE(is_backend_error(unknown));
  EXPECT_TRUE(is_backend_error(detect("builtin", [](const Device&) { return true; })));
  EXPECT_TRUE(is_backend_error(detect("", [](const Device&) { return true; })));
  EXPECT_TRUE(is_backend_error(detect("acme", nullptr)));
  EXPECT_TRUE(is_backend_error(build_with("ToyFwdOp", "acme", nullptr)));
  Registry registry("/opt/lost.so");
  registry.register_kernel_type("NoSuchOp", "key", kernel_type<ToyPlain>());
  const absl::Status lost = toy.runtime.commit(std::move(registry));
  EXPECT_THAT(lost,
              status_is(kNotFound, AllOf(HasSubstr("implementation key"), HasSubstr("NoSuchOp"))));
  EXPECT_TRUE(is_backend_error(lost));
  EXPECT_THAT(toy.runtime.registered_targets(), IsEmpty());
}

TEST_F(TargetTest, ARegistrationThatFailsLeavesNothingBehind) {
  Registry registry("/opt/half.so");
  registry.register_detector("half", [](const Device&) { return true; });
  registry.register_kernel_type("ToyFwdOp", "half_key", kernel_type<ToyPlain>());
  registry.register_kernel_builder("NoSuchOp", "half", log.builder(1));
  EXPECT_THAT(toy.runtime.commit(std::move(registry)), Not(is_ok()));
  EXPECT_THAT(toy.runtime.registered_targets(), IsEmpty());
  EXPECT_THAT(toy.runtime.kernel_rows("ToyFwdOp"), SizeIs(1));
}

// --- composites
// -----------------------------------------------------------------------------------------------------

class CompositeTest : public TargetTest {
 protected:
  absl::StatusOr<float> run_twice(ToyTwiceFwdOp& op, int index = 0) {
    std::vector<float> x(3, 1), y(3, 0);
    const Tensor tx = tensor(x, index), ty = tensor(y, index);
    const Tensor* inputs[] = {&tx};
    const Tensor* outputs[] = {&ty};
    KILN_RETURN_IF_ERROR(op.call(toy_stream(index), inputs, outputs));
    return y[0] - 1;
  }
};

TEST_F(CompositeTest, ACompositeRunsItsOwnCompositionAndEachSubOpSettles) {
  add_target("acme", 10);
  auto op = make<ToyTwiceFwdOp>();
  EXPECT_EQ(*run_twice(*op), 20) << "acme has no builder for the composite, and serves its sub-ops";
  EXPECT_EQ(op->first().serving_target(), "acme");
  EXPECT_EQ(op->second().serving_target(), "acme");
  EXPECT_EQ(*run_twice(*op), 20);
  EXPECT_THAT(op->iter_kernels(), IsEmpty());
}

TEST_F(CompositeTest, ATargetWithABuilderForTheCompositeServesTheWhole) {
  add_target("acme", 10);
  ASSERT_THAT(build_with("ToyTwiceFwdOp", "acme", log.builder(100)), is_ok());
  auto op = make<ToyTwiceFwdOp>();
  EXPECT_EQ(*run_twice(*op), 100);
  EXPECT_EQ(op->serving_target(), "acme");
  EXPECT_EQ(op->first().serving_target(), std::nullopt);
}

TEST_F(CompositeTest, SubOpsAreReachedByRequestTuneAndIterKernels) {
  auto op = make<ToyTwiceFwdOp>();
  ASSERT_EQ(*run_twice(*op), 2);
  EXPECT_THAT(op->iter_kernels(), SizeIs(2)) << "one entry of each sub-op";
  op->request_tune();
  EXPECT_TRUE(op->first().tuning_requested());
  EXPECT_TRUE(op->second().tuning_requested());
}

TEST_F(CompositeTest, ASubOpThatFailsUndoesTheCompositesChoice) {
  add_target("acme", 10);
  log.run_status = absl::UnavailableError("busy");
  auto op = make<ToyTwiceFwdOp>();
  EXPECT_THAT(run_twice(*op), status_is(kUnavailable));
  EXPECT_EQ(op->serving_target(), std::nullopt);
  EXPECT_EQ(op->first().serving_target(), std::nullopt);
  log.run_status = absl::OkStatus();
  EXPECT_EQ(*run_twice(*op), 20);
}

}  // namespace
}  // namespace kiln::testing
