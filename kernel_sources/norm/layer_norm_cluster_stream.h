#ifndef KILN_KERNEL_SOURCES_NORM_LAYER_NORM_CLUSTER_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_LAYER_NORM_CLUSTER_STREAM_H_

#include "layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm, a cluster of blocks for each long row, read twice.
class LayerNormClusterStreamKernel final : public LayerNormRows<ClusterStreamRows> {
 public:
  static Entry<LayerNormClusterStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<LayerNormClusterStreamKernel>(call);
  }
  using LayerNormRows::LayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_LAYER_NORM_CLUSTER_STREAM_H_
