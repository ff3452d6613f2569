#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_CLUSTER_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_CLUSTER_H_

#include "fused_add_rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm of x + residual, a cluster of blocks for each row.
class FusedAddRMSNormClusterKernel final : public FusedAddRMSNormRows<ClusterRows> {
 public:
  static constexpr auto preferred_over = keys("fused_add_rms_norm");
  static Entry<FusedAddRMSNormClusterKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddRMSNormClusterKernel>(call);
  }
  using FusedAddRMSNormRows::FusedAddRMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_CLUSTER_H_
