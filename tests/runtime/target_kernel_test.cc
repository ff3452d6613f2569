// The kernel that a target builds: what it is given, and what is asked of it.
// Cases of the reference's section on replacing a whole op are named after its rules.
#include "tests/runtime/target_fixture.h"

#include <gmock/gmock.h>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using enum absl::StatusCode;

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

}  // namespace
}  // namespace kiln::testing
