#ifndef KILN_KERNEL_SOURCES_NORM_LAYER_NORM_WARP_H_
#define KILN_KERNEL_SOURCES_NORM_LAYER_NORM_WARP_H_

#include "layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm, LANES threads of a warp for each row.
class LayerNormWarpKernel final : public LayerNormRows<WarpRows> {
 public:
  static Entry<LayerNormWarpKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<LayerNormWarpKernel>(call);
  }
  using LayerNormRows::LayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_LAYER_NORM_WARP_H_
