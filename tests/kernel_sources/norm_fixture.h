#ifndef KILN_TESTS_KERNEL_SOURCES_NORM_FIXTURE_H_
#define KILN_TESTS_KERNEL_SOURCES_NORM_FIXTURE_H_

#include <kiln/kiln.h>
#include <kiln/ops/layer_norm_call.h>
#include <kiln/runtime.h>

#include "runtime/boards.h"
#include "runtime/call_json.h"
#include "tests/support/status_matchers.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace kiln::testing {

inline constexpr int kArchs[] = {80, 86, 89, 90, 100, 120};

// A runtime of the in-tree kernels alone, without a disk.
inline RuntimeOptions in_tree_options() {
  RuntimeOptions options;
  options.load_installed_backends = false;
  return options;
}

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
inline std::vector<internal::CallLine> norm_problems(const Runtime& runtime) {
  std::ifstream file(KILN_NORM_PROBLEMS);
  std::stringstream text;
  text << file.rdbuf();
  absl::StatusOr<std::vector<internal::CallLine>> lines = internal::parse_calls(
      text.str(), "problems.jsonl", [&](std::string_view op) -> absl::StatusOr<const Signature*> {
        absl::StatusOr<const OpType*> type = runtime.op_type(op);
        if (!type.ok()) return type.status();
        return &(*type)->signature;
      });
  EXPECT_THAT(lines, is_ok());
  return lines.ok() ? *std::move(lines) : std::vector<internal::CallLine>();
}

// The row norms, and their files' stem.
struct NormForm {
  const char* op;
  const char* stem;
  bool has_weight, has_bias;
};
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
