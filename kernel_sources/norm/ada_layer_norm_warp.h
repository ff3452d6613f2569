#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_WARP_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_WARP_H_

#include "ada_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm, LANES threads of a warp for each row.
class AdaLayerNormWarpKernel final : public AdaLayerNormRows<WarpRows> {
 public:
  static Entry<AdaLayerNormWarpKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormWarpKernel>(call);
  }
  using AdaLayerNormRows::AdaLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_WARP_H_
