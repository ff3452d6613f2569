#ifndef KILN_KERNEL_SOURCES_NORM_RMS_NORM_CLUSTER_H_
#define KILN_KERNEL_SOURCES_NORM_RMS_NORM_CLUSTER_H_

#include "rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm, a cluster of blocks for each row.
class RMSNormClusterKernel final : public RMSNormRows<ClusterRows> {
 public:
  static constexpr auto preferred_over = keys("rms_norm");
  static Refusal refusal(const LayerNormCall& call) {
    if (Refusal below = refusal_below(call, least_bytes(kRMSNormForm))) return below;
    return RMSNormRows::refusal(call);
  }
  static Entry<RMSNormClusterKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<RMSNormClusterKernel>(call);
  }
  using RMSNormRows::RMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_RMS_NORM_CLUSTER_H_
