#ifndef KILN_KERNEL_SOURCES_NORM_RMS_NORM_CLUSTER_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_RMS_NORM_CLUSTER_STREAM_H_

#include "rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm, a cluster of blocks for each long row, read twice.
class RMSNormClusterStreamKernel final : public RMSNormRows<ClusterStreamRows> {
 public:
  static Entry<RMSNormClusterStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<RMSNormClusterStreamKernel>(call);
  }
  using RMSNormRows::RMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_RMS_NORM_CLUSTER_STREAM_H_
