#include <kiln/ops/group_norm.h>

#include "channels.h"
#include "sets.h"

#include <absl/strings/str_format.h>

#include <cmath>

namespace kiln::inline v1 {
namespace {

GroupNormCall call_of(const TensorSpec& x, std::int64_t groups, double eps) {
  const BatchNormCall extents = channels_call(x, eps, 0);
  GroupNormCall call;
  call.batch = extents.batch;
  call.channels = extents.channels;
  call.spatial = extents.spatial;
  call.groups = groups;
  call.eps = eps;
  call.dtype = x.dtype;
  call.where.device = x.device;
  return call;
}

}  // namespace

std::size_t GroupNormFwdInterface::workspace_bytes(const GroupNormCall& call) {
  const std::int64_t sets = call.batch * call.groups;
  if (!SplitSets::serves(sets, call.per_group())) return 0;
  return SplitSets::workspace_bytes(sets, call.per_group());
}

Signature GroupNormFwdOp::signature() {
  Signature s;
  s.op = "GroupNormFwdOp";
  s.inputs = {{.name = "x",
               .dtypes = {DType::float16, DType::bfloat16, DType::float32},
               .shape = "B, C, *L"},
              {.name = "weight", .dtype_of = "x", .shape = "C", .optional = true},
              {.name = "bias", .dtype_of = "x", .shape = "C", .optional = true}};
  s.params = {{"num_groups", ParamType::integer, std::nullopt},
              {"eps", ParamType::number, FieldValue(1e-5)}};
  s.outputs = {{.name = "y", .dtype_of = "x", .shape = "B, C, *L"}};
  return s;
}

absl::StatusOr<std::unique_ptr<GroupNormFwdOp>> GroupNormFwdOp::create(const Params& params,
                                                                       const OpOptions& options) {
  return create_from({{"num_groups", params.num_groups}, {"eps", params.eps}}, options);
}

GroupNormFwdOp::GroupNormFwdOp(OpInit init) : OpOf(std::move(init)) {
  groups_ = std::get<std::int64_t>(*find_param(params(), "num_groups"));
  eps_ = std::get<double>(*find_param(params(), "eps"));
}

absl::StatusOr<std::vector<KernelCall>> GroupNormFwdOp::plan_call(const CallArgs& args) const {
  const TensorSpec& x = args.inputs[0]->spec;
  if (!std::isfinite(eps_) || eps_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("GroupNormFwdOp: eps must be finite and at least 0: got %g", eps_));
  }
  if (groups_ < 1 || x.shape[1] % groups_ != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("GroupNormFwdOp: num_groups must divide the channels: got %d groups and x "
                        "of shape %s",
                        groups_, to_string(x.shape)));
  }
  if (numel(x.shape) == 0) return std::vector<KernelCall>{};
  GroupNormCall call = call_of(x, groups_, eps_);
  call.has_weight = args.inputs[1].has_value();
  call.has_bias = args.inputs[2].has_value();
  call.align = std::min(args.inputs[0]->alignment, args.outputs[0]->alignment);
  return std::vector<KernelCall>{{"group_norm_fwd", call}};
}

absl::Status GroupNormFwdOp::execute(const CallView& call) {
  const Tensor none{};
  const Tensor x = as_channels(call.input(0)), y = as_channels(call.output(0));
  if (x.elements() == 0) return absl::OkStatus();
  const std::size_t bytes =
      GroupNormFwdInterface::workspace_bytes(call_of(x.spec(), groups_, eps_));
  void* scratch = nullptr;
  if (bytes > 0) {
    auto memory = workspace(call.stream(), bytes);
    if (!memory.ok()) return memory.status();
    scratch = *memory;
  }
  return call.kernel<GroupNormFwdInterface>(0).forward(
      call.stream(), x, call.has_input(1) ? call.input(1) : none,
      call.has_input(2) ? call.input(2) : none, y, scratch);
}

absl::Status GroupNormFwdOp::forward(const Stream& stream, const Tensor& x, const Tensor* weight,
                                     const Tensor* bias, const Tensor& y) {
  const Tensor* inputs[] = {&x, weight, bias};
  const Tensor* outputs[] = {&y};
  return call(stream, inputs, outputs);
}

Roofline GroupNormFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  roofline.flops = 7 * static_cast<double>(numel(args.inputs[0]->spec.shape));
  return roofline;
}

}  // namespace kiln::inline v1
