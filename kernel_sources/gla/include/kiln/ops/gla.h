#ifndef KILN_OPS_GLA_H_
#define KILN_OPS_GLA_H_

#include <kiln/call_spec.h>
#include <kiln/op.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// The facts that choose and build a gated linear attention kernel.
struct GlaCall {
  std::int64_t batch = 1;
  std::int64_t seqlen = 1;
  std::int64_t heads = 1;
  std::int64_t dim_k = 128;        // of q, k and g
  std::int64_t dim_v = 128;        // of v and o
  DType dtype = DType::float16;    // of all but the states
  double scale = 1;                // of q
  bool has_initial_state = false;  // else it is 0
  KILN_CALL_SPEC(GlaCall, batch, seqlen, heads, dim_k, dim_v, dtype, scale, has_initial_state)
};

// Gated linear attention, for each sequence and head a recurrence over its tokens t with a state
// S[dim_k, dim_v]:
//   S = diag(exp(min(g[t], 0))) S + k[t]^T v[t]        o[t] = scale * q[t] S
// in float32, o rounded once. g is the natural logarithm of the gate, so at most 0; what is above
// counts as 0, and minus infinity forgets. Exponents are never positive: no gate overflows.
struct GlaFwdInterface : KernelInterface<GlaCall> {
  KILN_KERNEL_INTERFACE(GlaFwdInterface, forward)

  // All tensors are contiguous on the stream's device.
  //   q, k, g: [batch, seqlen, heads, dim_k], v, o: [batch, seqlen, heads, dim_v], call.dtype
  //   initial_state, final_state: [batch, heads, dim_k, dim_v], float32; initial_state has null
  //   data where the call has none. o and final_state are written and overlap nothing else.
  virtual absl::Status forward(const Stream& stream, const Tensor& q, const Tensor& k,
                               const Tensor& v, const Tensor& g, const Tensor& initial_state,
                               const Tensor& o, const Tensor& final_state) const = 0;
};

// Gated linear attention; one contract for prefill and for decode of one token.
//   q, k, g: [B, S, H, DK], float16 or bfloat16
//   v: [B, S, H, DV], q's dtype
//   initial_state: [B, H, DK, DV], float32, optional
//   o: [B, S, H, DV], q's dtype;  final_state: [B, H, DK, DV], float32
class KILN_EXPORT GlaFwdOp final : public OpOf<GlaFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"gla_fwd", GlaFwdInterface>>;
  struct Params {
    double scale = 0;  // of q; not above 0: DK^-0.5
  };
  struct Inputs {
    const Tensor* q = nullptr;
    const Tensor* k = nullptr;
    const Tensor* v = nullptr;
    const Tensor* g = nullptr;
    const Tensor* initial_state = nullptr;
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<GlaFwdOp>> create(const Params& params,
                                                          const OpOptions& options = {});
  explicit GlaFwdOp(OpInit init);

  // Writes o and final_state. REQUIRES: q, k, v and g are given.
  absl::Status forward(const Stream& stream, const Inputs& inputs, const Tensor& o,
                       const Tensor& final_state);

  Roofline roofline_of(const CallArgs& args) const override;

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override;
  absl::Status execute(const CallView& call) override;

 private:
  double scale_ = 0;
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_GLA_H_
