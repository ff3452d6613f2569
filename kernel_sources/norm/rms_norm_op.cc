#include <kiln/ops/rms_norm.h>

#include "row_norm_op.h"

namespace kiln::inline v1 {

std::size_t RMSNormFwdInterface::workspace_bytes(const LayerNormCall& call) {
  return row_workspace_bytes(call);
}

Signature RMSNormFwdOp::signature() {
  Signature s = row_norm_signature("RMSNormFwdOp");
  s.inputs.push_back(factor_input("weight"));
  return s;
}

absl::StatusOr<std::unique_ptr<RMSNormFwdOp>> RMSNormFwdOp::create(const Params& params,
                                                                   const OpOptions& options) {
  return create_from({{"normalized_shape", params.normalized_shape}, {"eps", params.eps}}, options);
}

RMSNormFwdOp::RMSNormFwdOp(OpInit init) : OpOf(std::move(init)) {
  const NormParams norm = norm_params(params());
  n_ = norm.n;
  trailing_ = norm.trailing;
  eps_ = norm.eps;
}

absl::StatusOr<std::vector<KernelCall>> RMSNormFwdOp::plan_call(const CallArgs& args) const {
  KILN_ASSIGN_OR_RETURN(LayerNormCall call, plan_rows(signature(), args, {n_, trailing_, eps_}, 1));
  call.has_weight = args.inputs[1].has_value();
  call.has_bias = false;
  return std::vector<KernelCall>{{"rms_norm_fwd", call}};
}

absl::Status RMSNormFwdOp::execute(const CallView& call) {
  const Tensor none{};
  const std::size_t bytes =
      RMSNormFwdInterface::workspace_bytes({.n = n_, .dtype = call.input(0).dtype});
  void* scratch = nullptr;
  if (bytes > 0) {
    KILN_ASSIGN_OR_RETURN(scratch, workspace(call.stream(), bytes));
  }
  return call.kernel<RMSNormFwdInterface>(0).forward(
      call.stream(), rows_view(call.input(0), trailing_), call.has_input(1) ? call.input(1) : none,
      rows_view(call.output(0), trailing_), scratch);
}

absl::Status RMSNormFwdOp::forward(const Stream& stream, const Tensor& x, const Tensor* weight,
                                   const Tensor& y) {
  const Tensor* inputs[] = {&x, weight};
  const Tensor* outputs[] = {&y};
  return call(stream, inputs, outputs);
}

Roofline RMSNormFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  // Additions and multiplications of an element.
  roofline.flops = 4 * static_cast<double>(numel(args.inputs[0]->spec.shape));
  return roofline;
}

}  // namespace kiln::inline v1
