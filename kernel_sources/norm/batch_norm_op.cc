#include <kiln/ops/batch_norm.h>
#include <kiln/runtime.h>

#include "channels.h"
#include "sets.h"

#include <absl/strings/str_format.h>

namespace kiln::inline v1 {

std::size_t BatchNormTrainFwdInterface::workspace_bytes(const BatchNormCall& call) {
  if (!SplitSets::serves(call.channels, call.per_channel())) return 0;
  return SplitSets::workspace_bytes(call.channels, call.per_channel());
}

Signature BatchNormFwdOp::signature() {
  Signature s;
  s.op = "BatchNormFwdOp";
  s.inputs = {{.name = "x",
               .dtypes = {DType::float16, DType::bfloat16, DType::float32},
               .shape = "B, C, *L"}};
  for (const char* name : {"running_mean", "running_var", "weight", "bias"}) {
    s.inputs.push_back({.name = name, .dtypes = {DType::float32}, .shape = "C", .optional = true});
  }
  s.inputs[1].written = s.inputs[2].written = true;
  s.params = {{"training", ParamType::boolean, FieldValue(false)},
              {"momentum", ParamType::number, FieldValue(0.1)},
              {"eps", ParamType::number, FieldValue(1e-5)}};
  s.outputs = {{.name = "y", .dtype_of = "x", .shape = "B, C, *L"}};
  for (const char* name : {"mean", "rstd"}) {
    s.outputs.push_back({.name = name,
                         .dtypes = {DType::float32},
                         .shape = "C",
                         .optional = true,
                         .only_if = "training"});
  }
  return s;
}

absl::StatusOr<std::unique_ptr<BatchNormFwdOp>> BatchNormFwdOp::create(const Params& params,
                                                                       const OpOptions& options) {
  return create_from(
      {{"training", params.training}, {"momentum", params.momentum}, {"eps", params.eps}}, options);
}

BatchNormFwdOp::BatchNormFwdOp(OpInit init) : OpOf(std::move(init)) {
  training_ = std::get<bool>(*find_param(params(), "training"));
  momentum_ = std::get<double>(*find_param(params(), "momentum"));
  eps_ = std::get<double>(*find_param(params(), "eps"));
}

absl::StatusOr<std::vector<KernelCall>> BatchNormFwdOp::plan_call(const CallArgs& args) const {
  absl::Status bad = check_channels("BatchNormFwdOp", args, eps_, momentum_, !training_);
  if (!bad.ok()) return bad;
  const TensorSpec& x = args.inputs[0]->spec;
  if (numel(x.shape) == 0) return std::vector<KernelCall>{};
  BatchNormCall call = channels_call(x, eps_, training_ ? momentum_ : 0);
  call.tracks = training_ && args.inputs[1].has_value();
  call.has_weight = args.inputs[3].has_value();
  call.has_bias = args.inputs[4].has_value();
  call.align = std::min(args.inputs[0]->alignment, args.outputs[0]->alignment);
  if (training_ && call.per_channel() == 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("BatchNormFwdOp: training must have more than one value a channel: got x "
                        "of shape %s",
                        to_string(x.shape)));
  }
  return std::vector<KernelCall>{
      {training_ ? "batch_norm_fwd_train" : "batch_norm_fwd_infer", call}};
}

absl::Status BatchNormFwdOp::execute(const CallView& call) {
  const Tensor none{};
  auto given = [&](std::size_t i) -> const Tensor& {
    return call.has_input(i) ? call.input(i) : none;
  };
  auto output = [&](std::size_t i) -> const Tensor& {
    return call.outputs()[i] == nullptr ? none : call.output(i);
  };
  const Tensor x = as_channels(call.input(0)), y = as_channels(call.output(0));
  if (x.elements() == 0) {
    for (std::size_t i : {1, 2}) {
      const Tensor& statistic = output(i);
      if (!training_ || statistic.data == nullptr) continue;
      auto support = runtime().device_support(call.stream().device.type);
      if (!support.ok()) return support.status();
      // All bits set: NaN, as no statistics of nothing are.
      absl::Status filled = (*support)->fill(call.stream(), statistic.data, 0xff,
                                             static_cast<std::size_t>(statistic.elements()) * 4);
      if (!filled.ok()) return filled;
    }
    return absl::OkStatus();
  }
  if (!training_) {
    return call.kernel<BatchNormInferFwdInterface>(0).forward(call.stream(), x, given(1), given(2),
                                                              given(3), given(4), y);
  }
  const std::size_t bytes =
      BatchNormTrainFwdInterface::workspace_bytes(channels_call(x.spec(), eps_, momentum_));
  void* scratch = nullptr;
  if (bytes > 0) {
    auto memory = workspace(call.stream(), bytes);
    if (!memory.ok()) return memory.status();
    scratch = *memory;
  }
  return call.kernel<BatchNormTrainFwdInterface>(0).forward(
      call.stream(), x, given(1), given(2), given(3), given(4), y, output(1), output(2), scratch);
}

absl::Status BatchNormFwdOp::forward(const Stream& stream, const Tensor& x,
                                     const Tensor* running_mean, const Tensor* running_var,
                                     const Tensor* weight, const Tensor* bias, const Tensor& y,
                                     const Tensor* mean, const Tensor* rstd) {
  const Tensor* inputs[] = {&x, running_mean, running_var, weight, bias};
  const Tensor* outputs[] = {&y, mean, rstd};
  return call(stream, inputs, outputs);
}

Roofline BatchNormFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  // Sum, centred square (training), and one fused scale and shift of every element.
  roofline.flops = (training_ ? 7 : 3) * static_cast<double>(numel(args.inputs[0]->spec.shape));
  return roofline;
}

}  // namespace kiln::inline v1
