#ifndef KILN_KERNEL_SOURCES_NORM_ROW_NORM_OP_H_
#define KILN_KERNEL_SOURCES_NORM_ROW_NORM_OP_H_

#include <kiln/op.h>
#include <kiln/ops/layer_norm_call.h>

#include <cstdint>
#include <string>

// What the ops that normalise rows share.
namespace kiln {

struct NormParams {
  std::int64_t n = 1;  // elements of a row
  int trailing = 0;    // dimensions of a row
  double eps = 0;
};
NormParams norm_params(const ParamValues& params);

// The signature of an op with input x, output y and the parameters of all.
Signature row_norm_signature(std::string op);
TensorParam row_input(std::string name);     // of x's size
TensorParam factor_input(std::string name);  // of a row's size, optional

// The call spec of a call whose first `row_inputs` inputs are rows, the first of them x; whether it
// has weight and bias is left to the op. InvalidArgument: eps is negative, or rows do not lie
// evenly apart (those of other inputs than x may be one and the same, that is 0 apart).
absl::StatusOr<LayerNormCall> plan_rows(const Signature& signature, const CallArgs& args,
                                        const NormParams& params, std::size_t row_inputs);

// Workspace of a call: of long rows the queue's word, of the longest the moments of slices.
std::size_t row_workspace_bytes(const LayerNormCall& call);

// `tensor` as [rows, n]. REQUIRES: it passed `plan_rows` or is contiguous.
Tensor rows_view(const Tensor& tensor, int trailing);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ROW_NORM_OP_H_
