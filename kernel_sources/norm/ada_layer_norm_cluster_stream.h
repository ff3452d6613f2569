#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_CLUSTER_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_CLUSTER_STREAM_H_

#include "ada_layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm, a cluster of blocks for each long row, read twice.
class AdaLayerNormClusterStreamKernel final : public AdaLayerNormRows<ClusterStreamRows> {
 public:
  static Entry<AdaLayerNormClusterStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormClusterStreamKernel>(call);
  }
  using AdaLayerNormRows::AdaLayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_CLUSTER_STREAM_H_
