#ifndef KILN_KERNEL_SOURCES_NORM_LAYER_NORM_ROWS_H_
#define KILN_KERNEL_SOURCES_NORM_LAYER_NORM_ROWS_H_

#include <kiln/ops/layer_norm.h>

#include "row_norm_kernel.h"

namespace kiln {

inline constexpr RowForm kLayerNormForm{.name = "layer_norm"};

// LayerNorm on a placement of rows.
template <class Placement>
class LayerNormRows : public Placement, public LayerNormFwdInterface {
 public:
  LayerNormRows(DType dtype, std::int64_t n, int vec, double eps, bool has_weight, bool has_bias)
      : Placement(kLayerNormForm, {dtype, n, vec, eps, has_weight, has_bias}) {}

  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, const Tensor& y, void* workspace) const override {
    return this->launch_rows(stream, workspace, x.shape[0], x.data, weight.data, bias.data, y.data,
                             x.shape[0], x.strides[0]);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_LAYER_NORM_ROWS_H_
