#ifndef KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_STREAM_H_

#include "fused_add_rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm of x + residual, a block for each row of any length, read twice.
class FusedAddRMSNormStreamKernel final : public FusedAddRMSNormRows<StreamRows> {
 public:
  static Entry<FusedAddRMSNormStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<FusedAddRMSNormStreamKernel>(call);
  }
  using FusedAddRMSNormRows::FusedAddRMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FUSED_ADD_RMS_NORM_STREAM_H_
