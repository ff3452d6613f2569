#include <kiln/ops/instance_norm.h>

#include "batch_norm_kernel.h"
#include "channels.h"

#include <absl/strings/str_format.h>

namespace kiln::inline v1 {

std::size_t InstanceNormTrainFwdInterface::workspace_bytes(const BatchNormCall& call) {
  const std::int64_t sets = call.batch * call.channels;
  // Behind what a way of working needs: a mean and a variance of each instance, for the running
  // statistics.
  return static_cast<std::size_t>(
      InstanceNormTrainKernel<SplitSets>::tracked_offset(sets, call.spatial) + sets * 8);
}

Signature InstanceNormFwdOp::signature() {
  Signature s;
  s.op = "InstanceNormFwdOp";
  s.inputs = {{.name = "x",
               .dtypes = {DType::float16, DType::bfloat16, DType::float32},
               .shape = "B, C, *L"}};
  for (const char* name : {"running_mean", "running_var"}) {
    s.inputs.push_back({.name = name,
                        .dtypes = {DType::float32},
                        .shape = "C",
                        .optional = true,
                        .written = true});
  }
  for (const char* name : {"weight", "bias"})
    s.inputs.push_back({.name = name, .dtype_of = "x", .shape = "C", .optional = true});
  s.params = {{"use_input_stats", ParamType::boolean, FieldValue(true)},
              {"momentum", ParamType::number, FieldValue(0.1)},
              {"eps", ParamType::number, FieldValue(1e-5)}};
  s.outputs = {{.name = "y", .dtype_of = "x", .shape = "B, C, *L"}};
  return s;
}

absl::StatusOr<std::unique_ptr<InstanceNormFwdOp>> InstanceNormFwdOp::create(
    const Params& params, const OpOptions& options) {
  return create_from({{"use_input_stats", params.use_input_stats},
                      {"momentum", params.momentum},
                      {"eps", params.eps}},
                     options);
}

InstanceNormFwdOp::InstanceNormFwdOp(OpInit init) : OpOf(std::move(init)) {
  use_input_stats_ = std::get<bool>(*find_param(params(), "use_input_stats"));
  momentum_ = std::get<double>(*find_param(params(), "momentum"));
  eps_ = std::get<double>(*find_param(params(), "eps"));
}

absl::StatusOr<std::vector<KernelCall>> InstanceNormFwdOp::plan_call(const CallArgs& args) const {
  absl::Status bad = check_channels("InstanceNormFwdOp", args, eps_, momentum_, !use_input_stats_);
  if (!bad.ok()) return bad;
  const TensorSpec& x = args.inputs[0]->spec;
  if (numel(x.shape) == 0) return std::vector<KernelCall>{};
  BatchNormCall call = channels_call(x, eps_, use_input_stats_ ? momentum_ : 0);
  call.tracks = use_input_stats_ && args.inputs[1].has_value();
  call.has_weight = args.inputs[3].has_value();
  call.has_bias = args.inputs[4].has_value();
  call.align = std::min(args.inputs[0]->alignment, args.outputs[0]->alignment);
  if (use_input_stats_ && call.spatial == 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("InstanceNormFwdOp: input statistics must have more than one value an "
                        "instance: got x of shape %s",
                        to_string(x.shape)));
  }
  return std::vector<KernelCall>{
      {use_input_stats_ ? "instance_norm_fwd_train" : "instance_norm_fwd_infer", call}};
}

absl::Status InstanceNormFwdOp::execute(const CallView& call) {
  const Tensor none{};
  auto given = [&](std::size_t i) -> const Tensor& {
    return call.has_input(i) ? call.input(i) : none;
  };
  const Tensor x = as_channels(call.input(0)), y = as_channels(call.output(0));
  if (x.elements() == 0) return absl::OkStatus();
  if (!use_input_stats_) {
    return call.kernel<InstanceNormInferFwdInterface>(0).forward(call.stream(), x, given(1),
                                                                 given(2), given(3), given(4), y);
  }
  const BatchNormCall spec = channels_call(x.spec(), eps_, momentum_);
  void* scratch = nullptr;
  if (call.has_input(1) || SplitSets::serves(spec.batch * spec.channels, spec.spatial)) {
    auto memory = workspace(call.stream(), InstanceNormTrainFwdInterface::workspace_bytes(spec));
    if (!memory.ok()) return memory.status();
    scratch = *memory;
  }
  return call.kernel<InstanceNormTrainFwdInterface>(0).forward(call.stream(), x, given(1), given(2),
                                                               given(3), given(4), y, scratch);
}

absl::Status InstanceNormFwdOp::forward(const Stream& stream, const Tensor& x,
                                        const Tensor* running_mean, const Tensor* running_var,
                                        const Tensor* weight, const Tensor* bias, const Tensor& y) {
  const Tensor* inputs[] = {&x, running_mean, running_var, weight, bias};
  const Tensor* outputs[] = {&y};
  return call(stream, inputs, outputs);
}

Roofline InstanceNormFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  roofline.flops =
      (use_input_stats_ ? 7 : 3) * static_cast<double>(numel(args.inputs[0]->spec.shape));
  return roofline;
}

}  // namespace kiln::inline v1
