#include <kiln/ops/gemm.h>

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln::inline v1 {
namespace {

// True when the second dimension is dense, so that rows lie apart; of a matrix that is both, rows.
bool has_dense_rows(const ArgSpec& arg) { return arg.spec.shape[1] <= 1 || arg.strides[1] == 1; }
bool has_dense_columns(const ArgSpec& arg) { return arg.spec.shape[0] <= 1 || arg.strides[0] == 1; }

// The largest power of two, at most 16, that divides the addresses of all dense runs of `arg`.
int run_alignment(const ArgSpec& arg, bool rows) {
  std::int64_t bits = arg.alignment | 16;
  const int across = rows ? 0 : 1;
  if (arg.spec.shape[across] > 1) bits |= arg.strides[across] * size_of(arg.spec.dtype);
  return static_cast<int>(bits & -bits);
}

absl::Status check_layout(const char* name, const ArgSpec& arg) {
  if (has_dense_rows(arg) || has_dense_columns(arg)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("GemmFwdOp: %s must be dense along one dimension: got shape %s with strides "
                      "%s; make it contiguous",
                      name, to_string(arg.spec.shape), to_string(arg.strides)));
}

}  // namespace

Signature GemmFwdOp::signature() {
  Signature s;
  s.op = "GemmFwdOp";
  s.inputs = {{.name = "a",
               .dtypes = {DType::float16, DType::bfloat16},
               .shape = "M, K",
               .contiguous = false},
              {.name = "b", .dtype_of = "a", .shape = "N, K", .contiguous = false}};
  s.outputs = {{.name = "d", .dtype_of = "a", .shape = "M, N"}};
  return s;
}

absl::StatusOr<std::unique_ptr<GemmFwdOp>> GemmFwdOp::create(const OpOptions& options) {
  return create_from({}, options);
}

absl::StatusOr<std::vector<KernelCall>> GemmFwdOp::plan_call(const CallArgs& args) const {
  const ArgSpec& a = *args.inputs[0];
  const ArgSpec& b = *args.inputs[1];
  KILN_RETURN_IF_ERROR(check_layout("a", a));
  KILN_RETURN_IF_ERROR(check_layout("b", b));
  GemmCall call;
  call.m = a.spec.shape[0];
  call.n = b.spec.shape[0];
  call.k = a.spec.shape[1];
  call.dtype = a.spec.dtype;
  call.trans_a = !has_dense_rows(a);
  call.trans_b = has_dense_rows(b);
  call.align = std::min(run_alignment(a, !call.trans_a), run_alignment(b, call.trans_b));
  call.where.device = a.spec.device;
  return std::vector<KernelCall>{{"gemm", call}};
}

absl::Status GemmFwdOp::execute(const CallView& call) {
  return call.kernel<GemmFwdInterface>(0).forward(call.stream(), call.input(0), call.input(1),
                                                  call.output(0));
}

absl::Status GemmFwdOp::forward(const Stream& stream, const Tensor& a, const Tensor& b,
                                const Tensor& d) {
  const Tensor* inputs[] = {&a, &b};
  const Tensor* outputs[] = {&d};
  return call(stream, inputs, outputs);
}

Roofline GemmFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  const Dims& a = args.inputs[0]->spec.shape;
  roofline.flops = 2 * static_cast<double>(a[0]) * static_cast<double>(a[1]) *
                   static_cast<double>(args.inputs[1]->spec.shape[0]);
  return roofline;
}

}  // namespace kiln::inline v1
