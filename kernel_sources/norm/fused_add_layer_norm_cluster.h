#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_CLUSTER_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_CLUSTER_H_

#include "fused_add_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm of x + residual, a cluster of blocks for each row.
class FusedAddLayerNormClusterKernel final : public FusedAddLayerNormRows<ClusterRows> {
 public:
  static constexpr auto preferred_over = keys("fused_add_layer_norm");
  static Entry<FusedAddLayerNormClusterKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddLayerNormClusterKernel>(call);
  }
  using FusedAddLayerNormRows::FusedAddLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_CLUSTER_H_
