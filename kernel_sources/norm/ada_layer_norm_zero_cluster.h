#ifndef KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_CLUSTER_H_
#define KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_CLUSTER_H_

#include "ada_layer_norm_zero_rows.h"
#include "row_placements.h"

namespace kiln {

// Adaptive LayerNorm with a gate, a cluster of blocks for each row.
class AdaLayerNormZeroClusterKernel final : public AdaLayerNormZeroRows<ClusterRows> {
 public:
  static constexpr auto preferred_over = keys("ada_layer_norm_zero");
  static Entry<AdaLayerNormZeroClusterKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<AdaLayerNormZeroClusterKernel>(call);
  }
  using AdaLayerNormZeroRows::AdaLayerNormZeroRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ADA_LAYER_NORM_ZERO_CLUSTER_H_
