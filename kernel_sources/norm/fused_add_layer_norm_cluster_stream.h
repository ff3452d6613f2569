#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_CLUSTER_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_CLUSTER_STREAM_H_

#include "fused_add_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm of x + residual, a cluster of blocks for each long row, read twice.
class FusedAddLayerNormClusterStreamKernel final : public FusedAddLayerNormRows<ClusterStreamRows> {
 public:
  static Entry<FusedAddLayerNormClusterStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddLayerNormClusterStreamKernel>(call);
  }
  using FusedAddLayerNormRows::FusedAddLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_LAYER_NORM_CLUSTER_STREAM_H_
