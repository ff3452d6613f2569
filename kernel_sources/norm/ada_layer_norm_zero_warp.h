#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_WARP_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_WARP_H_

#include "ada_layer_norm_zero_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm with a gate, LANES threads of a warp for each row.
class AdaLayerNormZeroWarpKernel final : public AdaLayerNormZeroRows<WarpRows> {
 public:
  static Entry<AdaLayerNormZeroWarpKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormZeroWarpKernel>(call);
  }
  using AdaLayerNormZeroRows::AdaLayerNormZeroRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_WARP_H_
