#ifndef KILN_KERNEL_SOURCES_NORM_RMS_NORM_H_
#define KILN_KERNEL_SOURCES_NORM_RMS_NORM_H_

#include "rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm, a block for each row.
class RMSNormKernel final : public RMSNormRows<BlockRows> {
 public:
  static Entry<RMSNormKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<RMSNormKernel>(call);
  }
  using RMSNormRows::RMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_RMS_NORM_H_
