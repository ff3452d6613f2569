#ifndef KILN_KERNEL_SOURCES_NORM_RMS_NORM_QUEUE_H_
#define KILN_KERNEL_SOURCES_NORM_RMS_NORM_QUEUE_H_

#include "rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm, a cluster of blocks for each long row, which it takes from a queue.
class RMSNormQueueKernel final : public RMSNormRows<QueueRows> {
 public:
  static constexpr auto preferred_over = keys("rms_norm_cluster_stream");
  static Entry<RMSNormQueueKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<RMSNormQueueKernel>(call);
  }
  using RMSNormRows::RMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_RMS_NORM_QUEUE_H_
