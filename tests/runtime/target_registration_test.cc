// What may be registered for a target, and targets of ops that consist of others.
// Cases of the reference's section on replacing a whole op are named after its rules.
#include "tests/runtime/target_fixture.h"

#include <gmock/gmock.h>

#include <optional>
#include <utility>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using enum absl::StatusCode;

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
