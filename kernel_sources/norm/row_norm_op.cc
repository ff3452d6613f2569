#include "row_norm_op.h"

#include "row_spread.h"
#include "rows.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace kiln {

NormParams norm_params(const ParamValues& params) {
  const auto& shape = std::get<std::vector<std::int64_t>>(*find_param(params, "normalized_shape"));
  NormParams out;
  for (const std::int64_t extent : shape) out.n *= extent;
  out.trailing = static_cast<int>(shape.size());
  out.eps = std::get<double>(*find_param(params, "eps"));
  return out;
}

Signature row_norm_signature(std::string op) {
  Signature s;
  s.op = std::move(op);
  s.inputs = {{.name = "x",
               .dtypes = {DType::float16, DType::bfloat16, DType::float32},
               .shape = "*B, *@normalized_shape",
               .contiguous = false}};
  s.params = {{"normalized_shape", ParamType::integers, std::nullopt},
              {"eps", ParamType::number, FieldValue(1e-5)}};
  s.outputs = {{.name = "y", .dtype_of = "x", .shape = "*B, *@normalized_shape"}};
  return s;
}

TensorParam row_input(std::string name) {
  return {.name = std::move(name),
          .dtype_of = "x",
          .shape = "*B, *@normalized_shape",
          .contiguous = false};
}

TensorParam factor_input(std::string name) {
  return {
      .name = std::move(name), .dtype_of = "x", .shape = "*@normalized_shape", .optional = true};
}

absl::StatusOr<LayerNormCall> plan_rows(const Signature& signature, const CallArgs& args,
                                        const NormParams& params, std::size_t row_inputs) {
  if (!(params.eps >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: eps must be at least 0: got %g", signature.op, params.eps));
  }
  LayerNormCall call;
  call.n = params.n;
  call.eps = params.eps;
  call.dtype = args.inputs[0]->spec.dtype;
  const std::int64_t size = size_of(call.dtype);
  call.align = std::min(common_alignment(args), alignment_of(params.n * size));
  for (std::size_t i = 0; i < row_inputs; ++i) {
    const ArgSpec& arg = *args.inputs[i];
    const std::optional<Rows> rows = as_rows(arg.spec.shape, arg.strides, params.trailing, i > 0);
    if (!rows) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: rows of %s must be dense and lie evenly apart: got shape %s with "
                          "strides %s; make it contiguous",
                          signature.op, signature.inputs[i].name, to_string(arg.spec.shape),
                          to_string(arg.strides)));
    }
    if (i == 0) call.few_rows = rows->rows <= LayerNormCall::kFewRows;
    if (rows->rows <= 1 || rows->stride == params.n) continue;
    call.strided = true;
    call.align = std::min(call.align, alignment_of(rows->stride * size));
  }
  call.where.device = args.inputs[0]->spec.device;
  return call;
}

std::size_t row_workspace_bytes(const LayerNormCall& call) {
  const std::int64_t bytes = call.n * size_of(call.dtype);
  if (SpreadRows::serves_rows_of(bytes)) return SpreadRows::kWorkspaceBytes;
  return QueueRows::serves_rows_of(bytes) ? sizeof(std::uint64_t) : 0;
}

Tensor rows_view(const Tensor& tensor, int trailing) {
  const Rows rows = *as_rows(tensor.shape, tensor.strides, trailing, true);
  std::int64_t n = 1;
  for (int d = tensor.shape.size() - trailing; d < tensor.shape.size(); ++d) n *= tensor.shape[d];
  Tensor view = tensor;
  view.shape = {rows.rows, n};
  view.strides = {rows.stride, 1};
  return view;
}

}  // namespace kiln
