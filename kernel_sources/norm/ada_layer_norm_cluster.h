#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_CLUSTER_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_CLUSTER_H_

#include "ada_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm, a cluster of blocks for each row.
class AdaLayerNormClusterKernel final : public AdaLayerNormRows<ClusterRows> {
 public:
  static constexpr auto preferred_over = keys("ada_layer_norm");
  static Entry<AdaLayerNormClusterKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormClusterKernel>(call);
  }
  using AdaLayerNormRows::AdaLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_CLUSTER_H_
