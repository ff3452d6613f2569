#ifndef KILN_KERNEL_SOURCES_NORM_RMS_NORM_WARP_H_
#define KILN_KERNEL_SOURCES_NORM_RMS_NORM_WARP_H_

#include "rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm, LANES threads of a warp for each row.
class RMSNormWarpKernel final : public RMSNormRows<WarpRows> {
 public:
  static Entry<RMSNormWarpKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<RMSNormWarpKernel>(call);
  }
  using RMSNormRows::RMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_RMS_NORM_WARP_H_
