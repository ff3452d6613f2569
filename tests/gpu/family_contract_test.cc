// Every problem of every family on a device, against the family's reference in double.
#include <kiln/memory.h>

#include "runtime/dtype_convert.h"
#include "tests/support/families.h"
#include "tests/support/gpu.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace kiln::testing {
namespace {

// A tensor's elements on the host, as doubles that its dtype holds, and its memory on the device.
struct TestTensor {
  Tensor view;  // on the device
  OwnedTensor memory;
  std::vector<double> values;  // row-major, whatever the strides

  HostTensor host() { return {view.shape, values.empty() ? &none : values.data()}; }
  double none = 0;
};

std::int64_t span_of(const ArgSpec& arg) {
  std::int64_t last = 0;
  for (int d = 0; d < arg.spec.shape.size(); ++d) {
    if (arg.spec.shape[d] == 0) return 0;
    last += (arg.spec.shape[d] - 1) * arg.strides[d];
  }
  return last + 1;
}

// Place in memory of the i-th element, row-major.
std::int64_t offset_of(const ArgSpec& arg, std::int64_t i) {
  std::int64_t offset = 0;
  for (int d = arg.spec.shape.size() - 1; d >= 0; --d) {
    offset += i % arg.spec.shape[d] * arg.strides[d];
    i /= arg.spec.shape[d];
  }
  return offset;
}

class FamilyContractTest : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    KILN_NEEDS_GPU();
    const auto found = runtime_.device_support(DeviceType::cuda());
    ASSERT_THAT(found, is_ok());
    support_ = *found;
  }

  // The tensor that `arg` describes, filled with `fill`; its address has just the alignment that
  // `arg` states.
  template <class F>
  void make(const ArgSpec& arg, TestTensor& t, F fill) {
    const auto size = static_cast<std::size_t>(size_of(arg.spec.dtype));
    const std::int64_t bytes = span_of(arg) * static_cast<std::int64_t>(size);
    const std::int64_t shift = arg.alignment < 16 ? arg.alignment : 0;
    auto memory = OwnedTensor::allocate(*support_, stream_, DType::uint8, {bytes + shift + 16});
    ASSERT_THAT(memory, is_ok());
    t.memory = *std::move(memory);
    t.view = {static_cast<char*>(t.memory.tensor().data) + shift, stream_.device, arg.spec.dtype,
              arg.spec.shape, arg.strides};
    t.values.resize(static_cast<std::size_t>(numel(arg.spec.shape)));
    // What lies between the elements is NaN (all bits set), so that reading it is seen.
    std::vector<char> raw(static_cast<std::size_t>(bytes), static_cast<char>(0xff));
    for (std::size_t i = 0; i < t.values.size(); ++i) {
      char* const at =
          raw.data() +
          static_cast<std::size_t>(offset_of(arg, static_cast<std::int64_t>(i))) * size;
      internal::store_element(arg.spec.dtype, at, fill());
      t.values[i] = internal::load_element(arg.spec.dtype, at);
    }
    ASSERT_THAT(support_->copy_to_device(stream_, t.view.data, raw.data(), raw.size()), is_ok());
    ASSERT_THAT(support_->synchronize(stream_), is_ok());
  }

  std::vector<double> download(const ArgSpec& arg, const Tensor& view) {
    const auto size = static_cast<std::size_t>(size_of(arg.spec.dtype));
    std::vector<char> raw(static_cast<std::size_t>(span_of(arg)) * size);
    EXPECT_THAT(support_->copy_to_host(stream_, raw.data(), view.data, raw.size()), is_ok());
    EXPECT_THAT(support_->synchronize(stream_), is_ok());
    std::vector<double> out(static_cast<std::size_t>(numel(arg.spec.shape)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = internal::load_element(
          arg.spec.dtype,
          raw.data() +
              static_cast<std::size_t>(offset_of(arg, static_cast<std::int64_t>(i))) * size);
    }
    return out;
  }

  // The tolerance of the signature: steps of the dtype at the value's size, and as many at the
  // tensor's.
  static void compare(const std::string& name, DType dtype, const std::vector<double>& got,
                      const std::vector<double>& want, double steps) {
    double size = 0;
    for (double v : want) size = std::isfinite(v) ? std::max(size, std::fabs(v)) : size;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i]) && std::isnan(got[i])) continue;
      if (got[i] == want[i]) continue;
      const double unit =
          internal::rounding_step(dtype, want[i]) + internal::rounding_step(dtype, size);
      ASSERT_LE(std::fabs(got[i] - want[i]), steps * unit)  // false for NaN
          << name << "[" << i << "]: got " << got[i] << ", want " << want[i];
    }
  }

  void run(const internal::ParsedCall& call) {
    auto made = runtime_.create_op(call.op, call.params,
                                   {.runtime = &runtime_, .target = std::string(kBuiltin)});
    ASSERT_THAT(made, is_ok());
    Op& op = **made;
    const Signature& s = op.signature();
    std::mt19937_64 random(20);
    std::normal_distribution<double> normal;
    std::vector<TestTensor> inputs(s.inputs.size()), outputs(s.outputs.size());
    std::vector<const Tensor*> input_views(s.inputs.size()), output_views;
    std::vector<HostTensor> host_inputs(s.inputs.size()), host_outputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!call.args.inputs[i]) continue;
      ASSERT_NO_FATAL_FAILURE(
          make(*call.args.inputs[i], inputs[i], [&] { return normal(random); }));
      input_views[i] = &inputs[i].view;
      host_inputs[i] = inputs[i].host();
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      // What no kernel has written is NaN.
      ASSERT_NO_FATAL_FAILURE(make(*call.args.outputs[i], outputs[i], [] { return std::nan(""); }));
      output_views.push_back(&outputs[i].view);
      host_outputs.push_back(outputs[i].host());
    }
    // Twice: the first call builds, the second is a hit. Once where inputs change.
    const bool writes_inputs = std::any_of(s.inputs.begin(), s.inputs.end(),
                                           [](const TensorParam& p) { return p.written; });
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == 1 && writes_inputs) break;
      ASSERT_THAT(op.call(stream_, input_views, output_views, call.execution_params), is_ok());
    }
    std::vector<std::vector<double>> got;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      got.push_back(download(*call.args.outputs[i], outputs[i].view));
    const Reference* reference = runtime_.reference(call.op);
    ASSERT_NE(reference, nullptr);
    ASSERT_THAT((*reference)(op.params(), call.execution_params, host_inputs, host_outputs),
                is_ok());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(compare(s.outputs[i].name, outputs[i].view.dtype, got[i],
                                      outputs[i].values, s.tolerance_steps));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!s.inputs[i].written || input_views[i] == nullptr) continue;
      ASSERT_NO_FATAL_FAILURE(compare(s.inputs[i].name, inputs[i].view.dtype,
                                      download(*call.args.inputs[i], inputs[i].view),
                                      inputs[i].values, s.tolerance_steps));
    }
  }

  Runtime runtime_{in_tree_options()};
  DeviceSupport* support_ = nullptr;
  Stream stream_{};  // the legacy default stream of cuda:0
};

TEST_P(FamilyContractTest, EveryProblemAgreesWithTheReference) {
  const auto problems = problems_of(runtime_, GetParam());
  ASSERT_THAT(problems, is_ok());
  for (const internal::CallLine& problem : *problems) {
    SCOPED_TRACE(GetParam().name + "/problems.jsonl:" + std::to_string(problem.line));
    ASSERT_NO_FATAL_FAILURE(run(problem.call));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyContractTest,
                         ::testing::ValuesIn(families_with_problems()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kiln::testing
