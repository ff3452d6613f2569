#include <kiln/ops/gla.h>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>

namespace kiln::inline v1 {

Signature GlaFwdOp::signature() {
  Signature s;
  s.op = "GlaFwdOp";
  s.inputs = {{.name = "q", .dtypes = {DType::float16, DType::bfloat16}, .shape = "B, S, H, DK"},
              {.name = "k", .dtype_of = "q", .shape = "B, S, H, DK"},
              {.name = "v", .dtype_of = "q", .shape = "B, S, H, DV"},
              {.name = "g", .dtype_of = "q", .shape = "B, S, H, DK"},
              {.name = "initial_state",
               .dtypes = {DType::float32},
               .shape = "B, H, DK, DV",
               .optional = true}};
  s.params = {{"scale", ParamType::number, FieldValue(0.0)}};
  s.outputs = {{.name = "o", .dtype_of = "q", .shape = "B, S, H, DV"},
               {.name = "final_state", .dtypes = {DType::float32}, .shape = "B, H, DK, DV"}};
  // A token's part of the state is rounded again with every later token that does not forget it.
  s.tolerance_steps = 16;
  return s;
}

absl::StatusOr<std::unique_ptr<GlaFwdOp>> GlaFwdOp::create(const Params& params,
                                                           const OpOptions& options) {
  return create_from({{"scale", params.scale}}, options);
}

GlaFwdOp::GlaFwdOp(OpInit init) : OpOf(std::move(init)) {
  scale_ = std::get<double>(*find_param(params(), "scale"));
}

absl::StatusOr<std::vector<KernelCall>> GlaFwdOp::plan_call(const CallArgs& args) const {
  if (!std::isfinite(scale_)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("GlaFwdOp: scale must be finite: got %g", scale_));
  }
  const TensorSpec& q = args.inputs[0]->spec;
  GlaCall call;
  call.batch = q.shape[0];
  call.seqlen = q.shape[1];
  call.heads = q.shape[2];
  call.dim_k = q.shape[3];
  call.dim_v = args.inputs[2]->spec.shape[3];
  call.dtype = q.dtype;
  call.scale = scale_ > 0
                   ? scale_
                   : 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(call.dim_k, 1)));
  call.has_initial_state = args.inputs[4].has_value();
  call.where.device = q.device;
  return std::vector<KernelCall>{{"gla_fwd", call}};
}

absl::Status GlaFwdOp::execute(const CallView& call) {
  const Tensor none{};
  return call.kernel<GlaFwdInterface>(0).forward(
      call.stream(), call.input(0), call.input(1), call.input(2), call.input(3),
      call.has_input(4) ? call.input(4) : none, call.output(0), call.output(1));
}

absl::Status GlaFwdOp::forward(const Stream& stream, const Inputs& inputs, const Tensor& o,
                               const Tensor& final_state) {
  const Tensor* list[] = {inputs.q, inputs.k, inputs.v, inputs.g, inputs.initial_state};
  const Tensor* outputs[] = {&o, &final_state};
  return call(stream, list, outputs);
}

Roofline GlaFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  // Decay, product and sum of every element of the state, and its part of q S; an exponential for
  // each row.
  const double rows = static_cast<double>(numel(args.inputs[0]->spec.shape));
  roofline.flops = rows * (5 * static_cast<double>(args.inputs[2]->spec.shape[3]) + 1);
  return roofline;
}

}  // namespace kiln::inline v1
