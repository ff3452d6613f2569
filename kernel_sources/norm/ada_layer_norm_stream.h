#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_STREAM_H_

#include "ada_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm, a block for each row of any length, read twice.
class AdaLayerNormStreamKernel final : public AdaLayerNormRows<StreamRows> {
 public:
  static Entry<AdaLayerNormStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormStreamKernel>(call);
  }
  using AdaLayerNormRows::AdaLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_STREAM_H_
