#ifndef KILN_OPS_LAYER_NORM_H_
#define KILN_OPS_LAYER_NORM_H_

#include <kiln/op.h>
#include <kiln/ops/layer_norm_call.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// Layer normalization over the trailing `call.n` elements:
//   y = (x - mean) / sqrt(var + eps) * weight + bias
// with mean and (biased) var of each row, accumulated in float32, and one rounding to the dtype at
// the end.
struct LayerNormFwdInterface : KernelInterface<LayerNormCall> {
  KILN_KERNEL_INTERFACE(LayerNormFwdInterface, forward)

  // Bytes of workspace that a call needs, whatever implementation serves it.
  KILN_EXPORT static std::size_t workspace_bytes(const LayerNormCall& call);

  // All tensors are of `call.dtype` on the stream's device; only y is written.
  //   x: [rows, n]; a row is dense (stride 1), rows are x.strides[0] >= n elements apart (equal to
  //   n unless call.strided) weight, bias: [n] dense; null data where the call has none y: [rows,
  //   n] contiguous; it does not overlap x unless it is x itself
  //   workspace: `workspace_bytes(call)` bytes, aligned to 16
  // A NaN or infinity in a row makes that row NaN and no other.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, const Tensor& y, void* workspace) const = 0;
};

// Layer normalization of x over its trailing dimensions `normalized_shape`.
//   x: [*B, *normalized_shape], float16, bfloat16 or float32, any strides
//   weight, bias: normalized_shape, x's dtype; both optional
//   y: like x, contiguous
class KILN_EXPORT LayerNormFwdOp final : public OpOf<LayerNormFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"layer_norm_fwd", LayerNormFwdInterface>>;
  struct Params {
    std::vector<std::int64_t> normalized_shape;
    double eps = 1e-5;  // >= 0
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<LayerNormFwdOp>> create(const Params& params,
                                                                const OpOptions& options = {});
  explicit LayerNormFwdOp(OpInit init);

  // Writes y. weight and bias may be null.
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor* weight,
                       const Tensor* bias, const Tensor& y);

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

#endif  // KILN_OPS_LAYER_NORM_H_
