#include <kiln/ops/ada_layer_norm.h>

#include "row_norm_op.h"

namespace kiln::inline v1 {

Signature AdaLayerNormFwdOp::signature() {
  Signature s = row_norm_signature("AdaLayerNormFwdOp");
  s.inputs.push_back(row_input("scale"));
  s.inputs.push_back(row_input("shift"));
  return s;
}

absl::StatusOr<std::unique_ptr<AdaLayerNormFwdOp>> AdaLayerNormFwdOp::create(
    const Params& params, const OpOptions& options) {
  return create_from({{"normalized_shape", params.normalized_shape}, {"eps", params.eps}}, options);
}

AdaLayerNormFwdOp::AdaLayerNormFwdOp(OpInit init) : OpOf(std::move(init)) {
  const NormParams norm = norm_params(params());
  n_ = norm.n;
  trailing_ = norm.trailing;
  eps_ = norm.eps;
}

absl::StatusOr<std::vector<KernelCall>> AdaLayerNormFwdOp::plan_call(const CallArgs& args) const {
  KILN_ASSIGN_OR_RETURN(LayerNormCall call, plan_rows(signature(), args, {n_, trailing_, eps_}, 3));
  call.has_weight = false;
  call.has_bias = false;
  return std::vector<KernelCall>{{"ada_layer_norm_fwd", call}};
}

absl::Status AdaLayerNormFwdOp::execute(const CallView& call) {
  return call.kernel<AdaLayerNormFwdInterface>(0).forward(
      call.stream(), rows_view(call.input(0), trailing_), rows_view(call.input(1), trailing_),
      rows_view(call.input(2), trailing_), rows_view(call.output(0), trailing_));
}

absl::Status AdaLayerNormFwdOp::forward(const Stream& stream, const Tensor& x, const Tensor& scale,
                                        const Tensor& shift, const Tensor& y) {
  const Tensor* inputs[] = {&x, &scale, &shift};
  const Tensor* outputs[] = {&y};
  return call(stream, inputs, outputs);
}

Roofline AdaLayerNormFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  // Additions and multiplications of an element.
  roofline.flops = 7 * static_cast<double>(numel(args.inputs[0]->spec.shape));
  return roofline;
}

}  // namespace kiln::inline v1
