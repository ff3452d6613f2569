#include <kiln/ops/fused_add_layer_norm.h>

#include "row_norm_op.h"

namespace kiln::inline v1 {

Signature FusedAddLayerNormFwdOp::signature() {
  Signature s = row_norm_signature("FusedAddLayerNormFwdOp");
  s.inputs.push_back(row_input("residual"));
  s.inputs.push_back(factor_input("weight"));
  s.inputs.push_back(factor_input("bias"));
  s.outputs.push_back({.name = "residual_out", .dtype_of = "x", .shape = "*B, *@normalized_shape"});
  return s;
}

absl::StatusOr<std::unique_ptr<FusedAddLayerNormFwdOp>> FusedAddLayerNormFwdOp::create(
    const Params& params, const OpOptions& options) {
  return create_from({{"normalized_shape", params.normalized_shape}, {"eps", params.eps}}, options);
}

FusedAddLayerNormFwdOp::FusedAddLayerNormFwdOp(OpInit init) : OpOf(std::move(init)) {
  const NormParams norm = norm_params(params());
  n_ = norm.n;
  trailing_ = norm.trailing;
  eps_ = norm.eps;
}

absl::StatusOr<std::vector<KernelCall>> FusedAddLayerNormFwdOp::plan_call(
    const CallArgs& args) const {
  KILN_ASSIGN_OR_RETURN(LayerNormCall call, plan_rows(signature(), args, {n_, trailing_, eps_}, 2));
  call.has_weight = args.inputs[2].has_value();
  call.has_bias = args.inputs[3].has_value();
  return std::vector<KernelCall>{{"fused_add_layer_norm_fwd", call}};
}

absl::Status FusedAddLayerNormFwdOp::execute(const CallView& call) {
  const Tensor none{};
  return call.kernel<FusedAddLayerNormFwdInterface>(0).forward(
      call.stream(), rows_view(call.input(0), trailing_), rows_view(call.input(1), trailing_),
      call.has_input(2) ? call.input(2) : none, call.has_input(3) ? call.input(3) : none,
      rows_view(call.output(0), trailing_), rows_view(call.output(1), trailing_));
}

absl::Status FusedAddLayerNormFwdOp::forward(const Stream& stream, const Tensor& x,
                                             const Tensor& residual, const Tensor* weight,
                                             const Tensor* bias, const Tensor& y,
                                             const Tensor& residual_out) {
  const Tensor* inputs[] = {&x, &residual, weight, bias};
  const Tensor* outputs[] = {&y, &residual_out};
  return call(stream, inputs, outputs);
}

Roofline FusedAddLayerNormFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  // Additions and multiplications of an element.
  roofline.flops = 8 * static_cast<double>(numel(args.inputs[0]->spec.shape));
  return roofline;
}

}  // namespace kiln::inline v1
