#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_H_

#include "ada_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm, a block for each row.
class AdaLayerNormKernel final : public AdaLayerNormRows<BlockRows> {
 public:
  static Entry<AdaLayerNormKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormKernel>(call);
  }
  using AdaLayerNormRows::AdaLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_H_
