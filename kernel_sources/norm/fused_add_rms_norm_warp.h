#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_WARP_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_WARP_H_

#include "fused_add_rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm of x + residual, LANES threads of a warp for each row.
class FusedAddRMSNormWarpKernel final : public FusedAddRMSNormRows<WarpRows> {
 public:
  static Entry<FusedAddRMSNormWarpKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddRMSNormWarpKernel>(call);
  }
  using FusedAddRMSNormRows::FusedAddRMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_WARP_H_
