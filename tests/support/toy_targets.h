#ifndef KILN_TESTS_SUPPORT_TOY_TARGETS_H_
#define KILN_TESTS_SUPPORT_TOY_TARGETS_H_

#include <kiln/kiln.h>

#include "tests/support/toy_op.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Ops for tests of targets, and a target that does what a test tells it and notes what it was
// given.
namespace kiln::testing {

class ToyPlain final : public ToyKernel {
 public:
  static Refusal refusal(const ToyCall& call) {
    if (call.dtype != DType::float32) return refuse("serves float32, got ", call.dtype);
    return serves;
  }
  explicit ToyPlain(const ToyCall&) {}
};

// Everything a signature can ask of a target: optional inputs, one that may be strided, one written
// in place, two outputs, an execution parameter.
class ToyWidestFwdOp final : public OpOf<ToyWidestFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"toy_fwd", ToyFwdInterface>>;
  static Signature signature() {
    Signature s;
    s.op = "ToyWidestFwdOp";
    s.inputs = {{.name = "a", .dtypes = {DType::float32}, .shape = "n", .contiguous = false},
                {.name = "b", .dtypes = {DType::float32}, .shape = "n", .optional = true},
                {.name = "c", .dtypes = {DType::float32}, .shape = "n", .optional = true},
                {.name = "acc", .dtypes = {DType::float32}, .shape = "n", .written = true}};
    s.params = {{"gain", ParamType::number, FieldValue(2.5)}};
    s.execution_params = {{"offset", ParamType::number, FieldValue(0.0)}};
    s.outputs = {{.name = "y", .dtype_of = "a", .shape = "n"},
                 {.name = "z", .dtype_of = "a", .shape = "n"}};
    return s;
  }
  explicit ToyWidestFwdOp(OpInit init) : OpOf(std::move(init)) {}

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override {
    return std::vector<KernelCall>{{"toy_fwd", ToyCall{.n = args.inputs[0]->spec.shape[0]}}};
  }
  absl::Status execute(const CallView&) override { return absl::InternalError("has no kernels"); }
};

// A composite: ToyFwdOp twice.
class ToyTwiceFwdOp final : public OpOf<ToyTwiceFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<>;
  static Signature signature() {
    Signature s;
    s.op = "ToyTwiceFwdOp";
    s.inputs = {{.name = "x", .dtypes = {DType::float32}, .shape = "n"}};
    s.outputs = {{.name = "y", .dtype_of = "x", .shape = "n"}};
    return s;
  }
  explicit ToyTwiceFwdOp(OpInit init) : OpOf(std::move(init)) {
    OpOptions options;
    options.runtime = &runtime();
    first_ = *ToyFwdOp::create_from({}, options);
    second_ = *ToyFwdOp::create_from({}, options);
  }
  ToyFwdOp& first() { return *first_; }
  ToyFwdOp& second() { return *second_; }

 protected:
  std::vector<Op*> sub_ops() const override { return {first_.get(), second_.get()}; }
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs&) const override {
    return std::vector<KernelCall>{};
  }
  absl::Status execute(const CallView& call) override {
    std::vector<float> between(static_cast<std::size_t>(call.input(0).elements()));
    Tensor middle = call.input(0);
    middle.data = between.data();
    KILN_RETURN_IF_ERROR(first_->forward(call.stream(), call.input(0), middle));
    return second_->forward(call.stream(), middle, call.output(0));
  }

 private:
  std::unique_ptr<ToyFwdOp> first_, second_;
};

// What a test's target does, and what it was given. Outlives the kernels it makes.
class TargetLog {
 public:
  absl::Status build_status, run_status;
  std::optional<std::string> build_throws, run_throws;
  bool throws_a_number = false, build_makes_nothing = false, offers_tuning = false;
  std::optional<Config> config;
  std::function<void()> while_building;
  std::atomic<int> alive{0}, tunes{0};

  // y = first input + amount + offset; a second output gets -first input, a fourth input += first.
  BuildTargetKernel builder(float amount) {
    return
        [this, amount](std::span<const std::optional<TensorSpec>> inputs,
                       const ParamValues& params) -> absl::StatusOr<std::unique_ptr<TargetKernel>> {
          note_build(inputs, params);
          if (while_building) std::exchange(while_building, nullptr)();
          if (throws_a_number) throw 42;
          if (build_throws) throw std::runtime_error(*build_throws);
          if (!build_status.ok()) return build_status;
          if (build_makes_nothing) return std::unique_ptr<TargetKernel>();
          return std::make_unique<Adder>(*this, amount);
        };
  }
  std::vector<std::string> builds() const {
    const std::lock_guard lock(mutex_);
    return builds_;
  }
  ParamValues params() const {
    const std::lock_guard lock(mutex_);
    return params_;
  }
  std::size_t runs() const { return runs_; }
  void clear() {
    const std::lock_guard lock(mutex_);
    builds_.clear();
  }

 private:
  class Adder final : public TargetKernel {
   public:
    Adder(TargetLog& log, float amount) : log_(log), amount_(amount) { ++log_.alive; }
    ~Adder() override { --log_.alive; }
    absl::Status run(const Stream&, std::span<const Tensor* const> inputs,
                     std::span<const Tensor* const> outputs,
                     const ParamValues& execution_params) override {
      ++log_.runs_;
      if (log_.run_throws) throw std::runtime_error(*log_.run_throws);
      KILN_RETURN_IF_ERROR(log_.run_status);
      const FieldValue* offset = find_param(execution_params, "offset");
      const auto more = offset == nullptr ? 0.0f : static_cast<float>(std::get<double>(*offset));
      if (inputs[0]->dtype != DType::float32) return absl::OkStatus();
      const auto at = [](const Tensor* t) { return static_cast<float*>(t->data); };
      for (std::int64_t i = 0; i < inputs[0]->elements(); ++i) {
        at(outputs[0])[i] = at(inputs[0])[i] + amount_ + more;
        if (outputs.size() > 1) at(outputs[1])[i] = -at(inputs[0])[i];
        if (inputs.size() > 3) at(inputs[3])[i] += at(inputs[0])[i];
      }
      return absl::OkStatus();
    }
    bool request_tune() override {
      ++log_.tunes;
      return log_.offers_tuning;
    }
    std::optional<Config> config() const override { return log_.config; }

   private:
    TargetLog& log_;
    const float amount_;
  };

  void note_build(std::span<const std::optional<TensorSpec>> inputs, const ParamValues& params) {
    std::string text;
    for (const auto& spec : inputs) {
      text += text.empty() ? "" : " ";
      text += spec ? std::string(to_string(spec->dtype)) + to_string(spec->shape) : "none";
    }
    const std::lock_guard lock(mutex_);
    builds_.push_back(std::move(text));
    params_ = params;
  }

  mutable std::mutex mutex_;
  std::vector<std::string> builds_;
  ParamValues params_;
  std::atomic<std::size_t> runs_{0};
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_TOY_TARGETS_H_
