#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_CLUSTER_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_CLUSTER_STREAM_H_

#include "fused_add_rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm of x + residual, a cluster of blocks for each long row, read twice.
class FusedAddRMSNormClusterStreamKernel final : public FusedAddRMSNormRows<ClusterStreamRows> {
 public:
  static Entry<FusedAddRMSNormClusterStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddRMSNormClusterStreamKernel>(call);
  }
  using FusedAddRMSNormRows::FusedAddRMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_CLUSTER_STREAM_H_
