#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_ROWS_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_ROWS_H_

#include <kiln/ops/fused_add_rms_norm.h>

#include "row_norm_kernel.h"

namespace kiln {

inline constexpr RowForm kFusedAddRMSNormForm{
    .name = "fused_add_rms_norm", .centred = false, .fused = true};

// RMS normalization of a sum on a placement of rows.
template <class Placement>
class FusedAddRMSNormRows : public Placement, public FusedAddRMSNormFwdInterface {
 public:
  static Refusal refusal(const LayerNormCall& call) {
    if (call.has_bias) return refuse("FusedAddRMSNorm has no bias: has_bias must be false");
    return Placement::refusal(call);
  }

  FusedAddRMSNormRows(DType dtype, std::int64_t n, int vec, double eps, bool has_weight,
                      bool has_bias)
      : Placement(kFusedAddRMSNormForm, {dtype, n, vec, eps, has_weight, has_bias}) {}

  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& residual,
                       const Tensor& weight, const Tensor& y,
                       const Tensor& residual_out) const override {
    return this->launch_rows(stream, x.shape[0], x.data, residual.data, weight.data, y.data,
                             residual_out.data, x.shape[0], x.strides[0], residual.strides[0]);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_ROWS_H_
