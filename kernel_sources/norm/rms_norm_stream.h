#ifndef KILN_KERNEL_SOURCES_NORM_RMS_NORM_STREAM_H_
#define KILN_KERNEL_SOURCES_NORM_RMS_NORM_STREAM_H_

#include "rms_norm_rows.h"
#include "row_placements.h"

namespace kiln {

// RMSNorm, a block for each row of any length, read twice.
class RMSNormStreamKernel final : public RMSNormRows<StreamRows> {
 public:
  static Entry<RMSNormStreamKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<RMSNormStreamKernel>(call);
  }
  using RMSNormRows::RMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_RMS_NORM_STREAM_H_
