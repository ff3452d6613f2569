#ifndef KILN_OPS_RMS_NORM_H_
#define KILN_OPS_RMS_NORM_H_

#include <kiln/op.h>
#include <kiln/ops/layer_norm_call.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::inline v1 {

// RMS normalization over the trailing `call.n` elements:
//   y = x / sqrt(mean(x^2) + eps) * weight
// accumulated in float32, with one rounding to the dtype at the end.
struct RMSNormFwdInterface : KernelInterface<LayerNormCall> {
  KILN_KERNEL_INTERFACE(RMSNormFwdInterface, forward)

  // Bytes of workspace that a call needs, whatever implementation serves it.
  KILN_EXPORT static std::size_t workspace_bytes(const LayerNormCall& call);

  // All tensors are of `call.dtype` on the stream's device; only y is written.
  //   x: [rows, n]; a row is dense, rows are strides[0] elements apart: at least n
  //   weight: [n] dense; null data where the call has none
  // REQUIRES: not call.has_bias.
  //   y: [rows, n] contiguous; overlaps no other tensor unless it is x itself
  //   workspace: `workspace_bytes(call)` bytes, aligned to 16
  // NaN or infinity reaches only its own row.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                               const Tensor& y, void* workspace) const = 0;
};

// RMS normalization over x's trailing dimensions `normalized_shape`.
//   x: [*B, *normalized_shape], float16, bfloat16 or float32, rows evenly apart
//   weight: normalized_shape, x's dtype; optional
//   y: like x, contiguous
class KILN_EXPORT RMSNormFwdOp final : public OpOf<RMSNormFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"rms_norm_fwd", RMSNormFwdInterface>>;
  struct Params {
    std::vector<std::int64_t> normalized_shape;
    double eps = 1e-5;  // >= 0
  };
  static Signature signature();
  static absl::StatusOr<std::unique_ptr<RMSNormFwdOp>> create(const Params& params,
                                                              const OpOptions& options = {});
  explicit RMSNormFwdOp(OpInit init);

  // Writes y. weight may be null.
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor* weight,
                       const Tensor& y);

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

#endif  // KILN_OPS_RMS_NORM_H_
