#ifndef KILN_KERNEL_SOURCES_NORM_LAYER_NORM_H_
#define KILN_KERNEL_SOURCES_NORM_LAYER_NORM_H_

#include "layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm, a block for each row.
class LayerNormKernel final : public LayerNormRows<BlockRows> {
 public:
  static Entry<LayerNormKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<LayerNormKernel>(call);
  }
  using LayerNormRows::LayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_LAYER_NORM_H_
