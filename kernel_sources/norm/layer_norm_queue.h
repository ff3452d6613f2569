#ifndef KILN_KERNEL_SOURCES_NORM_LAYER_NORM_QUEUE_H_
#define KILN_KERNEL_SOURCES_NORM_LAYER_NORM_QUEUE_H_

#include "layer_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// LayerNorm, a cluster of blocks for each long row, which it takes from a queue.
class LayerNormQueueKernel final : public LayerNormRows<QueueRows> {
 public:
  static constexpr auto preferred_over = keys("layer_norm_cluster_stream");
  static Entry<LayerNormQueueKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<LayerNormQueueKernel>(call);
  }
  using LayerNormRows::LayerNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_LAYER_NORM_QUEUE_H_
