#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_STREAM_H_

#include "ada_layer_norm_zero_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm with a gate, a block for each row of any length, read twice.
class AdaLayerNormZeroStreamKernel final : public AdaLayerNormZeroRows<StreamRows> {
 public:
  static Entry<AdaLayerNormZeroStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormZeroStreamKernel>(call);
  }
  using AdaLayerNormZeroRows::AdaLayerNormZeroRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_STREAM_H_
