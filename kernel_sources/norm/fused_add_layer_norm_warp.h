#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_WARP_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_WARP_H_

#include "fused_add_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm of x + residual, LANES threads of a warp for each row.
class FusedAddLayerNormWarpKernel final : public FusedAddLayerNormRows<WarpRows> {
 public:
  static Entry<FusedAddLayerNormWarpKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddLayerNormWarpKernel>(call);
  }
  using FusedAddLayerNormRows::FusedAddLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_WARP_H_
