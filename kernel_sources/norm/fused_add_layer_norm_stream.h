#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_STREAM_H_

#include "fused_add_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm of x + residual, a block for each row of any length, read twice.
class FusedAddLayerNormStreamKernel final : public FusedAddLayerNormRows<StreamRows> {
 public:
  static Entry<FusedAddLayerNormStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddLayerNormStreamKernel>(call);
  }
  using FusedAddLayerNormRows::FusedAddLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_STREAM_H_
