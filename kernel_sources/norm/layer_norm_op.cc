#include <kiln/ops/layer_norm.h>

#include "row_norm_op.h"

namespace kiln::inline v1 {

std::size_t LayerNormFwdInterface::workspace_bytes(const LayerNormCall& call) {
  return row_workspace_bytes(call);
}

Signature LayerNormFwdOp::signature() {
  Signature s = row_norm_signature("LayerNormFwdOp");
  s.inputs.push_back(factor_input("weight"));
  s.inputs.push_back(factor_input("bias"));
  return s;
}

absl::StatusOr<std::unique_ptr<LayerNormFwdOp>> LayerNormFwdOp::create(const Params& params,
                                                                       const OpOptions& options) {
  return create_from({{"normalized_shape", params.normalized_shape}, {"eps", params.eps}}, options);
}

LayerNormFwdOp::LayerNormFwdOp(OpInit init) : OpOf(std::move(init)) {
  const NormParams norm = norm_params(params());
  n_ = norm.n;
  trailing_ = norm.trailing;
  eps_ = norm.eps;
}

absl::StatusOr<std::vector<KernelCall>> LayerNormFwdOp::plan_call(const CallArgs& args) const {
  KILN_ASSIGN_OR_RETURN(LayerNormCall call, plan_rows(signature(), args, {n_, trailing_, eps_}, 1));
  call.has_weight = args.inputs[1].has_value();
  call.has_bias = args.inputs[2].has_value();
  return std::vector<KernelCall>{{"layer_norm_fwd", call}};
}

absl::Status LayerNormFwdOp::execute(const CallView& call) {
  const Tensor none{};
  const std::size_t bytes =
      LayerNormFwdInterface::workspace_bytes({.n = n_, .dtype = call.input(0).dtype});
  void* scratch = nullptr;
  if (bytes > 0) {
    KILN_ASSIGN_OR_RETURN(scratch, workspace(call.stream(), bytes));
  }
  return call.kernel<LayerNormFwdInterface>(0).forward(
      call.stream(), rows_view(call.input(0), trailing_), call.has_input(1) ? call.input(1) : none,
      call.has_input(2) ? call.input(2) : none, rows_view(call.output(0), trailing_), scratch);
}

absl::Status LayerNormFwdOp::forward(const Stream& stream, const Tensor& x, const Tensor* weight,
                                     const Tensor* bias, const Tensor& y) {
  const Tensor* inputs[] = {&x, weight, bias};
  const Tensor* outputs[] = {&y};
  return call(stream, inputs, outputs);
}

Roofline LayerNormFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  // Sum, centred square, scale, weight and bias of every element: an addition or multiplication
  // each.
  roofline.flops = 7 * static_cast<double>(numel(args.inputs[0]->spec.shape));
  return roofline;
}

}  // namespace kiln::inline v1
