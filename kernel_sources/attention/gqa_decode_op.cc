#include <kiln/ops/gqa_decode.h>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>

namespace kiln::inline v1 {
namespace {

enum Input : std::size_t { kQ, kK, kV, kKScale, kVScale, kRopeCos, kRopeSin };

// Fewer keys than this are not worth a split of their own.
constexpr std::int64_t kMinSplitKeys = 64;
constexpr std::int64_t kMaxSplits = 128;
// Splits of all sequences and kv heads together: several times the blocks that the largest device
// holds.
constexpr std::int64_t kMaxTasks = 1024;

absl::Status invalid(const std::string& what) {
  return absl::InvalidArgumentError("GqaDecodeFwdOp: " + what);
}

// The largest power of two, at most 16, that divides the addresses of all heads of `arg`.
int head_alignment(const ArgSpec& arg) {
  std::int64_t bits = arg.alignment | 16;
  const std::int64_t size = size_of(arg.spec.dtype);
  for (int d = 0; d < 3; ++d) {
    if (arg.spec.shape[d] > 1) bits |= arg.strides[d] * size;
  }
  return static_cast<int>(bits & -bits);
}

absl::Status check_cache(const char* name, const ArgSpec& arg) {
  const int last = arg.spec.shape.size() - 1;
  if (arg.spec.shape[last] > 1 && arg.strides[last] != 1) {
    return invalid(absl::StrFormat("the elements of a head of %s must lie together: got strides %s",
                                   name, to_string(arg.strides)));
  }
  return absl::OkStatus();
}

absl::Status check_optional(const CallArgs& args, DType dtype) {
  const auto has = [&](Input i) { return args.inputs[i].has_value(); };
  if (has(kRopeCos) != has(kRopeSin)) {
    return invalid(
        absl::StrFormat("rope_cos and rope_sin must be passed both or not at all: got %s",
                        has(kRopeCos) ? "rope_cos" : "rope_sin"));
  }
  if (has(kRopeCos)) {
    const std::int64_t pairs = args.inputs[kRopeCos]->spec.shape[0];
    const Dims& q = args.inputs[kQ]->spec.shape;
    if (2 * pairs > q[q.size() - 1]) {
      return invalid(absl::StrFormat("rope_cos must hold at most half a head's %d elements: got %d",
                                     q[q.size() - 1], pairs));
    }
  }
  if (dtype == DType::float8_e4m3 && !(has(kKScale) && has(kVScale))) {
    return invalid("k and v of float8_e4m3 must come with k_scale and v_scale: got none");
  }
  if (dtype != DType::float8_e4m3 && (has(kKScale) || has(kVScale))) {
    return invalid(absl::StrFormat("k_scale and v_scale must come with float8_e4m3: got k of %s",
                                   to_string(dtype)));
  }
  return absl::OkStatus();
}

}  // namespace

std::int64_t GqaDecodeFwdInterface::max_splits(std::int64_t batch, std::int64_t heads_kv,
                                               std::int64_t seqlen_kv) {
  const std::int64_t by_keys = (seqlen_kv + kMinSplitKeys - 1) / kMinSplitKeys;
  const std::int64_t by_tasks = kMaxTasks / std::max<std::int64_t>(batch * heads_kv, 1);
  return std::clamp<std::int64_t>(std::min(by_keys, by_tasks), 1, kMaxSplits);
}

std::int64_t GqaDecodeFwdInterface::workspace_bytes(std::int64_t batch, std::int64_t heads,
                                                    std::int64_t heads_kv, std::int64_t dim,
                                                    std::int64_t seqlen_kv) {
  const std::int64_t splits = max_splits(batch, heads_kv, seqlen_kv);
  return splits == 1 ? 0 : splits * batch * heads * (dim + 2) * std::int64_t{sizeof(float)};
}

Signature GqaDecodeFwdOp::signature() {
  Signature s;
  s.op = "GqaDecodeFwdOp";
  s.inputs = {
      {.name = "q", .dtypes = {DType::float16, DType::bfloat16}, .shape = "B, *Q, H, D"},
      {.name = "k",
       .dtypes = {DType::float16, DType::bfloat16, DType::float8_e4m3},
       .shape = "B, S, Hkv, D",
       .contiguous = false},
      {.name = "v", .dtype_of = "k", .shape = "B, S, Hkv, D", .contiguous = false},
      {.name = "k_scale", .dtypes = {DType::float32}, .shape = "B, Hkv", .optional = true},
      {.name = "v_scale", .dtypes = {DType::float32}, .shape = "B, Hkv", .optional = true},
      {.name = "rope_cos", .dtypes = {DType::float32}, .shape = "R", .optional = true},
      {.name = "rope_sin", .dtypes = {DType::float32}, .shape = "R", .optional = true},
  };
  s.params = {{"scale", ParamType::number, FieldValue(0.0)},
              {"softcap", ParamType::number, FieldValue(0.0)}};
  s.outputs = {{.name = "out", .dtype_of = "q", .shape = "B, *Q, H, D"}};
  return s;
}

absl::StatusOr<std::unique_ptr<GqaDecodeFwdOp>> GqaDecodeFwdOp::create(const Params& params,
                                                                       const OpOptions& options) {
  return create_from({{"scale", params.scale}, {"softcap", params.softcap}}, options);
}

GqaDecodeFwdOp::GqaDecodeFwdOp(OpInit init) : OpOf(std::move(init)) {
  scale_ = std::get<double>(*find_param(params(), "scale"));
  softcap_ = std::get<double>(*find_param(params(), "softcap"));
}

absl::StatusOr<std::vector<KernelCall>> GqaDecodeFwdOp::plan_call(const CallArgs& args) const {
  const ArgSpec& q = *args.inputs[kQ];
  const ArgSpec& k = *args.inputs[kK];
  const ArgSpec& v = *args.inputs[kV];
  if (!std::isfinite(scale_))
    return invalid(absl::StrFormat("scale must be finite: got %g", scale_));
  if (!(softcap_ >= 0) || std::isinf(softcap_)) {
    return invalid(absl::StrFormat("softcap must be finite and at least 0: got %g", softcap_));
  }
  const int rank = q.spec.shape.size();
  if (rank > 4 || (rank == 4 && q.spec.shape[1] != 1)) {
    return invalid(
        absl::StrFormat("q must be [B, H, D] or [B, 1, H, D]: got %s", to_string(q.spec.shape)));
  }
  AttentionCall call;
  call.batch = k.spec.shape[0];
  call.heads = q.spec.shape[rank - 2];
  call.heads_kv = k.spec.shape[2];
  call.dim = k.spec.shape[3];
  call.seqlen_kv = k.spec.shape[1];
  if (call.heads_kv < 1 || call.heads % call.heads_kv != 0) {
    return invalid(absl::StrFormat("heads of q must be a multiple of those of k: got %d and %d",
                                   call.heads, call.heads_kv));
  }
  call.dtype = k.spec.dtype;
  call.dtype_q = q.spec.dtype;
  if (call.dtype != call.dtype_q && call.dtype != DType::float8_e4m3) {
    return invalid(absl::StrFormat("k must have q's dtype %s or float8_e4m3: got %s",
                                   to_string(call.dtype_q), to_string(call.dtype)));
  }
  KILN_RETURN_IF_ERROR(check_cache("k", k));
  KILN_RETURN_IF_ERROR(check_cache("v", v));
  KILN_RETURN_IF_ERROR(check_optional(args, call.dtype));
  call.scale = scale_ == 0 ? 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(call.dim, 1)))
                           : scale_;
  call.softcap = softcap_;
  call.fuse_rope = args.inputs[kRopeCos].has_value();
  call.align = std::min(head_alignment(k), head_alignment(v));
  call.where.device = q.spec.device;
  return std::vector<KernelCall>{{"gqa_decode_fwd", call}};
}

absl::Status GqaDecodeFwdOp::execute(const CallView& call) {
  const auto or_none = [&](Input i) { return call.has_input(i) ? call.input(i) : Tensor{}; };
  GqaDecodeTensors t;
  t.q = call.input(kQ);
  t.k = call.input(kK);
  t.v = call.input(kV);
  t.k_scale = or_none(kKScale);
  t.v_scale = or_none(kVScale);
  t.rope_cos = or_none(kRopeCos);
  t.rope_sin = or_none(kRopeSin);
  t.out = call.output(0);
  const Dims& cache = t.k.shape;
  const std::int64_t heads = t.q.shape[t.q.shape.size() - 2];
  for (Tensor* one : {&t.q, &t.out}) {
    one->shape = {cache[0], heads, cache[3]};
    one->strides = contiguous_strides(one->shape);
  }
  const std::int64_t bytes =
      GqaDecodeFwdInterface::workspace_bytes(cache[0], heads, cache[2], cache[3], cache[1]);
  if (bytes > 0) {
    KILN_ASSIGN_OR_RETURN(void* const scratch,
                          workspace(call.stream(), static_cast<std::size_t>(bytes)));
    t.workspace = Tensor::contiguous(scratch, call.stream().device, DType::uint8, {bytes});
  }
  return call.kernel<GqaDecodeFwdInterface>(0).forward(call.stream(), t);
}

absl::Status GqaDecodeFwdOp::forward(const Stream& stream, const Inputs& inputs,
                                     const Tensor& out) {
  const Tensor* list[] = {inputs.q,       inputs.k,        inputs.v,       inputs.k_scale,
                          inputs.v_scale, inputs.rope_cos, inputs.rope_sin};
  const Tensor* outputs[] = {&out};
  return call(stream, list, outputs);
}

Roofline GqaDecodeFwdOp::roofline_of(const CallArgs& args) const {
  Roofline roofline = Op::roofline_of(args);
  // A multiplication and an addition of each query element with each key's, and the same with its
  // value's.
  const double keys = static_cast<double>(args.inputs[kK]->spec.shape[1]);
  roofline.flops = 4 * static_cast<double>(numel(args.inputs[kQ]->spec.shape)) * keys;
  return roofline;
}

}  // namespace kiln::inline v1
