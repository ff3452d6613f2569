#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_H_

#include "fused_add_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm of x + residual, a block for each row.
class FusedAddLayerNormKernel final : public FusedAddLayerNormRows<BlockRows> {
 public:
  static Entry<FusedAddLayerNormKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddLayerNormKernel>(call);
  }
  using FusedAddLayerNormRows::FusedAddLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_H_
