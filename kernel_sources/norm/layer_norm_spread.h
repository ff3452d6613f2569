#ifndef KILN_KERNEL_SOURCES_NORM_LAYER_NORM_SPREAD_H_
#define KILN_KERNEL_SOURCES_NORM_LAYER_NORM_SPREAD_H_

#include "layer_norm_rows.h"
#include "row_spread.h"

namespace kiln {

// LayerNorm, all multiprocessors for each of the longest rows.
class LayerNormSpreadKernel final : public LayerNormRows<SpreadRows> {
 public:
  static constexpr auto preferred_over = keys("layer_norm_cluster_stream");
  static Entry<LayerNormSpreadKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<LayerNormSpreadKernel>(call);
  }
  using LayerNormRows::LayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_LAYER_NORM_SPREAD_H_
