#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_H_

#include "ada_layer_norm_zero_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm with a gate, a block for each row.
class AdaLayerNormZeroKernel final : public AdaLayerNormZeroRows<BlockRows> {
 public:
  static Entry<AdaLayerNormZeroKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormZeroKernel>(call);
  }
  using AdaLayerNormZeroRows::AdaLayerNormZeroRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_H_
