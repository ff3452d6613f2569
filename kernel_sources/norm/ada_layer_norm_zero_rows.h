#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_ROWS_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_ROWS_H_

#include <kiln/ops/ada_layer_norm_zero.h>

#include "row_norm_kernel.h"

namespace kiln {

inline constexpr RowForm kAdaLayerNormZeroForm{
    .name = "ada_layer_norm_zero", .adaptive = true, .gated = true};

// Adaptive layer normalization with a gate on a placement of rows.
template <class Placement>
class AdaLayerNormZeroRows : public Placement, public AdaLayerNormZeroFwdInterface {
 public:
  static Refusal refusal(const LayerNormCall& call) {
    if (call.has_weight || call.has_bias)
      return refuse(
          "AdaLayerNormZero scale and shift take the place of weight and bias: has_weight and "
          "has_bias must be false");
    return Placement::refusal(call);
  }

  AdaLayerNormZeroRows(DType dtype, std::int64_t n, int vec, double eps, bool has_weight,
                       bool has_bias)
      : Placement(kAdaLayerNormZeroForm, {dtype, n, vec, eps, has_weight, has_bias}) {}

  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& scale,
                       const Tensor& shift, const Tensor& gate, const Tensor& y) const override {
    return this->launch_rows(stream, x.shape[0], x.data, scale.data, shift.data, gate.data, y.data,
                             x.shape[0], x.strides[0], scale.strides[0], shift.strides[0],
                             gate.strides[0]);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_ROWS_H_
