#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_CLUSTER_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_CLUSTER_STREAM_H_

#include "ada_layer_norm_zero_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm with a gate, a cluster of blocks for each long row, read twice.
class AdaLayerNormZeroClusterStreamKernel final : public AdaLayerNormZeroRows<ClusterStreamRows> {
 public:
  static Entry<AdaLayerNormZeroClusterStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormZeroClusterStreamKernel>(call);
  }
  using AdaLayerNormZeroRows::AdaLayerNormZeroRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_CLUSTER_STREAM_H_
