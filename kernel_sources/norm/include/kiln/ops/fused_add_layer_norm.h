#ifndef KILN_OPS_FUSED_ADD_LAYER_NORM_H_
#define KILN_OPS_FUSED_ADD_LAYER_NORM_H_

#include <kiln/op.h>
#include <kiln/ops/layer_norm_call.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// Layer normalization of a sum over the trailing `call.n` elements:
//   residual_out = x + residual, rounded to the dtype
//   y = (residual_out - mean) / sqrt(var + eps) * weight + bias
// accumulated in float32, with one rounding to the dtype at the end. y is taken of the rounded sum,
// so that the pair equals the unfused composition.
struct FusedAddLayerNormFwdInterface : KernelInterface<LayerNormCall> {
  KILN_KERNEL_INTERFACE(FusedAddLayerNormFwdInterface, forward)

  // All tensors are of `call.dtype` on the stream's device; only y and residual_out are written.
  //   x, residual: [rows, n]; a row is dense, rows are strides[0] elements apart: at least n
  //   weight, bias: [n] dense; null data where the call has none
  //   y, residual_out: [rows, n] contiguous; overlaps no other tensor unless it is x or residual
  //   itself
  // NaN or infinity reaches only its own row.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& residual,
                               const Tensor& weight, const Tensor& bias, const Tensor& y,
                               const Tensor& residual_out) const = 0;
};

// Layer normalization of a sum over x's trailing dimensions `normalized_shape`.
//   x, residual: [*B, *normalized_shape], float16, bfloat16 or float32, rows evenly apart
//   weight, bias: normalized_shape, x's dtype; optional
//   y, residual_out: like x, contiguous
class KILN_EXPORT FusedAddLayerNormFwdOp final : public OpOf<FusedAddLayerNormFwdOp> {
 public:
  using Interfaces =
      kiln::Interfaces<Named<"fused_add_layer_norm_fwd", FusedAddLayerNormFwdInterface>>;
  struct Params {
    std::vector<std::int64_t> normalized_shape;
    double eps = 1e-5;  // >= 0
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<FusedAddLayerNormFwdOp>> create(
      const Params& params, const OpOptions& options = {});
  explicit FusedAddLayerNormFwdOp(OpInit init);

  // Writes y and residual_out. weight and bias may be null.
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& residual,
                       const Tensor* weight, const Tensor* bias, const Tensor& y,
                       const Tensor& residual_out);

  Roofline roofline_of(const CallArgs& args) const override;

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override;
  absl::Status execute(const CallView& call) override;

 private:
  std::int64_t n_ = 0;
  int trailing_ = 0;
  double eps_ = 0;
};

}  // namespace kiln::inline v1

#endif  // KILN_OPS_FUSED_ADD_LAYER_NORM_H_
