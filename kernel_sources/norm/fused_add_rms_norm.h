#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_H_

#include "fused_add_rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm of x + residual, a block for each row.
class FusedAddRMSNormKernel final : public FusedAddRMSNormRows<BlockRows> {
 public:
  static Entry<FusedAddRMSNormKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddRMSNormKernel>(call);
  }
  using FusedAddRMSNormRows::FusedAddRMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_H_
