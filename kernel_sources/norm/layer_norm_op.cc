#include <kiln/ops/layer_norm.h>

#include "rows.h"

#include <absl/strings/str_format.h>

namespace kiln::inline v1 {

Signature LayerNormFwdOp::signature() {
  Signature s;
  s.op = "LayerNormFwdOp";
  s.inputs = {
      {.name = "x",
       .dtypes = {DType::float16, DType::bfloat16, DType::float32},
       .shape = "*B, *@normalized_shape",
       .contiguous = false},
      {.name = "weight", .dtype_of = "x", .shape = "*@normalized_shape", .optional = true},
      {.name = "bias", .dtype_of = "x", .shape = "*@normalized_shape", .optional = true},
  };
  s.params = {{"normalized_shape", ParamType::integers, std::nullopt},
              {"eps", ParamType::number, FieldValue(1e-5)}};
  s.outputs = {{.name = "y", .dtype_of = "x", .shape = "*B, *@normalized_shape"}};
  return s;
}

absl::StatusOr<std::unique_ptr<LayerNormFwdOp>> LayerNormFwdOp::create(const Params& params,
                                                                       const OpOptions& options) {
  return create_from({{"normalized_shape", params.normalized_shape}, {"eps", params.eps}}, options);
}

LayerNormFwdOp::LayerNormFwdOp(OpInit init) : OpOf(std::move(init)) {
  const auto& shape =
      std::get<std::vector<std::int64_t>>(*find_param(params(), "normalized_shape"));
  n_ = 1;
  for (std::int64_t extent : shape) n_ *= extent;
  trailing_ = static_cast<int>(shape.size());
  eps_ = std::get<double>(*find_param(params(), "eps"));
}

absl::StatusOr<std::vector<KernelCall>> LayerNormFwdOp::plan_call(const CallArgs& args) const {
  const ArgSpec& x = *args.inputs[0];
  if (!(eps_ >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("LayerNormFwdOp: eps must be at least 0: got %g", eps_));
  }
  const std::optional<Rows> rows = as_rows(x.spec.shape, x.strides, trailing_);
  if (!rows) {
    return absl::InvalidArgumentError(
        absl::StrFormat("LayerNormFwdOp: rows of x must be dense and lie evenly apart: got shape "
                        "%s with strides %s; make it contiguous",
                        to_string(x.spec.shape), to_string(x.strides)));
  }
  LayerNormCall call;
  call.n = n_;
  call.eps = eps_;
  call.dtype = x.spec.dtype;
  call.has_weight = args.inputs[1].has_value();
  call.has_bias = args.inputs[2].has_value();
  call.strided = rows->stride != n_ && rows->rows > 1;
  const std::int64_t size = size_of(call.dtype);
  call.align = std::min({common_alignment(args), alignment_of(n_ * size),
                         call.strided ? alignment_of(rows->stride * size) : 16});
  call.where.device = x.spec.device;
  return std::vector<KernelCall>{{"layer_norm_fwd", call}};
}

absl::Status LayerNormFwdOp::execute(const CallView& call) {
  const Rows rows = *as_rows(call.input(0).shape, call.input(0).strides, trailing_);
  Tensor x = call.input(0);
  x.shape = {rows.rows, n_};
  x.strides = {rows.stride, 1};
  Tensor y = call.output(0);
  y.shape = x.shape;
  y.strides = {n_, 1};
  const Tensor none{};
  return call.kernel<LayerNormFwdInterface>(0).forward(call.stream(), x,
                                                       call.has_input(1) ? call.input(1) : none,
                                                       call.has_input(2) ? call.input(2) : none, y);
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
