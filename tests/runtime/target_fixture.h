#ifndef KILN_TESTS_RUNTIME_TARGET_FIXTURE_H_
#define KILN_TESTS_RUNTIME_TARGET_FIXTURE_H_

#include <kiln/log.h>

#include "tests/support/status_matchers.h"
#include "tests/support/toy_op.h"
#include "tests/support/toy_targets.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln::testing {

// An op with an in-tree kernel, and targets as backends register them.
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

}  // namespace kiln::testing

#endif  // KILN_TESTS_RUNTIME_TARGET_FIXTURE_H_
