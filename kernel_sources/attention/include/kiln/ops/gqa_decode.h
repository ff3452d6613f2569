#ifndef KILN_OPS_GQA_DECODE_H_
#define KILN_OPS_GQA_DECODE_H_

#include <kiln/op.h>
#include <kiln/ops/attention_call.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// What a decode kernel reads and writes, on one device.
struct GqaDecodeTensors {
  Tensor q;  // [batch, heads, dim], call.dtype_q, contiguous
  Tensor k,
      v;  // [batch, seqlen_kv, heads_kv, dim], call.dtype; a head is dense, the rest is strided
  Tensor k_scale;  // [batch, heads_kv], float32, contiguous; null data: 1
  Tensor v_scale;  // the same
  Tensor
      rope_cos;  // [pairs], float32, contiguous, 2 * pairs <= dim; null data unless call.fuse_rope
  Tensor rope_sin;   // the same
  Tensor out;        // [batch, heads, dim], call.dtype_q, contiguous; overlaps nothing else
  Tensor workspace;  // [bytes], uint8, aligned to 16 bytes; contents are undefined before and after
};

// Attention of one query a sequence over all its keys, for each head h with its kv head g = h /
// (heads / heads_kv):
//   s[j] = cap(call.scale * k_scale * rotate(q[h]) . k[j, g])    cap(s) = softcap * tanh(s /
//   softcap), or s out[h] = sum_j exp(s[j]) * v_scale * v[j, g] / sum_j exp(s[j])
// accumulated in float32 and rounded once. `rotate` turns the pairs (q[i], q[i + pairs]), i <
// pairs, by the given angles. Without keys the result is 0. A NaN among a head's scores or values
// makes that head's result NaN.
struct KILN_EXPORT GqaDecodeFwdInterface : KernelInterface<AttentionCall> {
  KILN_KERNEL_INTERFACE(GqaDecodeFwdInterface, forward)

  // Writes tensors.out and tensors.workspace.
  virtual absl::Status forward(const Stream& stream, const GqaDecodeTensors& tensors) const = 0;

  // Parts that an implementation may cut the keys of a sequence into, each with its partial result
  // in the workspace.
  static std::int64_t max_splits(std::int64_t batch, std::int64_t heads_kv, std::int64_t seqlen_kv);
  // Bytes of the workspace: for every split and query head, `dim` sums, a maximum and a weight, in
  // float32.
  static std::int64_t workspace_bytes(std::int64_t batch, std::int64_t heads, std::int64_t heads_kv,
                                      std::int64_t dim, std::int64_t seqlen_kv);
};

// Grouped-query attention, one query a sequence ("decode"). The query is the sequence's last token:
// it sees every key.
//   q: [B, H, D] or [B, 1, H, D], float16 or bfloat16
//   k, v: [B, S, Hkv, D], q's dtype or float8_e4m3; any strides but D's, which is 1; H is a
//   multiple of Hkv k_scale, v_scale: [B, Hkv], float32; for float8_e4m3, both rope_cos, rope_sin:
//   [R], float32, 2 R <= D; both or none: the query's rotation. Keys in the cache are rotated. out:
//   like q
class KILN_EXPORT GqaDecodeFwdOp final : public OpOf<GqaDecodeFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"gqa_decode_fwd", GqaDecodeFwdInterface>>;
  struct Params {
    double scale = 0;    // of the scores; 0: D^-0.5
    double softcap = 0;  // >= 0; 0: none
  };
  struct Inputs {
    const Tensor* q = nullptr;
    const Tensor* k = nullptr;
    const Tensor* v = nullptr;
    const Tensor* k_scale = nullptr;
    const Tensor* v_scale = nullptr;
    const Tensor* rope_cos = nullptr;
    const Tensor* rope_sin = nullptr;
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<GqaDecodeFwdOp>> create(const Params& params,
                                                                const OpOptions& options = {});
  explicit GqaDecodeFwdOp(OpInit init);

  // Writes out. REQUIRES: q, k and v are given.
  absl::Status forward(const Stream& stream, const Inputs& inputs, const Tensor& out);

  Roofline roofline_of(const CallArgs& args) const override;

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override;
  absl::Status execute(const CallView& call) override;

 private:
  double scale_ = 0;
  double softcap_ = 0;
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_GQA_DECODE_H_
