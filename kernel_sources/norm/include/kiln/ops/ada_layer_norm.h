#ifndef KILN_OPS_ADA_LAYER_NORM_H_
#define KILN_OPS_ADA_LAYER_NORM_H_

#include <kiln/op.h>
#include <kiln/ops/layer_norm_call.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// Adaptive layer normalization over the trailing `call.n` elements:
//   y = scale * (x - mean) / sqrt(var + eps) + shift
// accumulated in float32, with one rounding to the dtype at the end. scale and shift are used as
// they are (not 1 + scale).
struct AdaLayerNormFwdInterface : KernelInterface<LayerNormCall> {
  KILN_KERNEL_INTERFACE(AdaLayerNormFwdInterface, forward)

  // All tensors are of `call.dtype` on the stream's device; only y is written.
  //   x, scale, shift: [rows, n]; a row is dense, rows are strides[0] elements apart: at least n
  //   for x; 0 in the others repeats one row
  // REQUIRES: not call.has_weight and not call.has_bias.
  //   y: [rows, n] contiguous; overlaps no other tensor unless it is x itself
  // NaN or infinity reaches only its own row.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& scale,
                               const Tensor& shift, const Tensor& y) const = 0;
};

// Adaptive layer normalization over x's trailing dimensions `normalized_shape`.
//   x, scale, shift: [*B, *normalized_shape], float16, bfloat16 or float32, rows evenly apart
//   y: like x, contiguous
class KILN_EXPORT AdaLayerNormFwdOp final : public OpOf<AdaLayerNormFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"ada_layer_norm_fwd", AdaLayerNormFwdInterface>>;
  struct Params {
    std::vector<std::int64_t> normalized_shape;
    double eps = 1e-5;  // >= 0
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<AdaLayerNormFwdOp>> create(const Params& params,
                                                                   const OpOptions& options = {});
  explicit AdaLayerNormFwdOp(OpInit init);

  // Writes y.
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& scale,
                       const Tensor& shift, const Tensor& y);

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

#endif  // KILN_OPS_ADA_LAYER_NORM_H_
