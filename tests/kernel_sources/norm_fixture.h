#ifndef KILN_TESTS_KERNEL_SOURCES_NORM_FIXTURE_H_
#define KILN_TESTS_KERNEL_SOURCES_NORM_FIXTURE_H_

#include <kiln/kiln.h>
#include <kiln/ops/layer_norm_call.h>
#include <kiln/runtime.h>

#include "runtime/boards.h"
#include "runtime/call_json.h"
#include "tests/support/families.h"
#include "tests/support/status_matchers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::testing {

inline constexpr int kArchs[] = {80, 86, 89, 90, 100, 120};

inline std::string interface_of(const Runtime& runtime, const std::string& op) {
  return (*runtime.op_type(op))->interfaces.at(0).name;
}

inline std::unique_ptr<Op> make_op(Runtime& runtime, const std::string& name,
                                   const ParamValues& params, OpOptions options = {}) {
  options.runtime = &runtime;
  absl::StatusOr<std::unique_ptr<Op>> op = runtime.create_op(name, params, options);
  EXPECT_THAT(op, is_ok());
  return op.ok() ? *std::move(op) : nullptr;
}

inline std::unique_ptr<Op> make_norm(Runtime& runtime, const std::string& name,
                                     OpOptions options = {}) {
  return make_op(runtime, name,
                 {{"normalized_shape", std::vector<std::int64_t>{4096}}, {"eps", 1e-5}},
                 std::move(options));
}

// The family's calls, as the tools read them.
inline std::vector<internal::CallLine> norm_problems(Runtime& runtime) {
  for (const Family& family : families_with_problems()) {
    if (family.name != "norm") continue;
    absl::StatusOr<std::vector<internal::CallLine>> lines = problems_of(runtime, family);
    EXPECT_THAT(lines, is_ok());
    if (lines.ok()) return *std::move(lines);
  }
  ADD_FAILURE() << "the family norm has no problems";
  return {};
}

// The row norms, and their files' stem.
struct NormForm {
  const char* op;
  const char* stem;
  bool has_weight, has_bias;
  // Bytes of rows from which clusters take few.
  std::int64_t least_of_clusters() const {
    return stem == std::string_view("rms_norm") ? 30720 : 16384;
  }
};
// Whether an input of a form is one row for all.
inline bool is_factor(const TensorParam& input) {
  return input.name == "weight" || input.name == "bias";
}
inline constexpr NormForm kForms[] = {
    {"LayerNormFwdOp", "layer_norm", true, true},
    {"RMSNormFwdOp", "rms_norm", true, false},
    {"FusedAddLayerNormFwdOp", "fused_add_layer_norm", true, true},
    {"FusedAddRMSNormFwdOp", "fused_add_rms_norm", true, false},
    {"AdaLayerNormFwdOp", "ada_layer_norm", false, false},
    {"AdaLayerNormZeroFwdOp", "ada_layer_norm_zero", false, false},
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_KERNEL_SOURCES_NORM_FIXTURE_H_
