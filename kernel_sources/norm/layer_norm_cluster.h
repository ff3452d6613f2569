#ifndef KILN_KERNEL_SOURCES_NORM_LAYER_NORM_CLUSTER_H_
#define KILN_KERNEL_SOURCES_NORM_LAYER_NORM_CLUSTER_H_

#include "layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm, a cluster of blocks for each row.
class LayerNormClusterKernel final : public LayerNormRows<ClusterRows> {
 public:
  static constexpr auto preferred_over = keys("layer_norm");
  static Entry<LayerNormClusterKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<LayerNormClusterKernel>(call);
  }
  using LayerNormRows::LayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_LAYER_NORM_CLUSTER_H_
