#ifndef KILN_KERNEL_SOURCES_NORM_RMS_NORM_ROWS_H_
#define KILN_KERNEL_SOURCES_NORM_RMS_NORM_ROWS_H_

#include <kiln/ops/rms_norm.h>

#include "row_norm_kernel.h"

namespace kiln {

inline constexpr RowForm kRMSNormForm{.name = "rms_norm", .centred = false};

// RMS normalization on a placement of rows.
template <class Placement>
class RMSNormRows : public Placement, public RMSNormFwdInterface {
 public:
  static Refusal refusal(const LayerNormCall& call) {
    if (call.has_bias) return refuse("RMSNorm has no bias: has_bias must be false");
    return Placement::refusal(call);
  }

  RMSNormRows(DType dtype, std::int64_t n, int vec, double eps, bool has_weight, bool has_bias)
      : Placement(kRMSNormForm, {dtype, n, vec, eps, has_weight, has_bias}) {}

  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& y,
                       void* workspace) const override {
    return this->launch_rows(stream, workspace, x.shape[0], x.data, weight.data, y.data, x.shape[0],
                             x.strides[0]);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_RMS_NORM_ROWS_H_
