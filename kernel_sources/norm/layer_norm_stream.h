#ifndef KILN_KERNEL_SOURCES_NORM_LAYER_NORM_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_LAYER_NORM_STREAM_H_

#include "layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm, a block for each row of any length, read twice.
class LayerNormStreamKernel final : public LayerNormRows<StreamRows> {
 public:
  static Entry<LayerNormStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<LayerNormStreamKernel>(call);
  }
  using LayerNormRows::LayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_LAYER_NORM_STREAM_H_
