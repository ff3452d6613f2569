#ifndef KILN_KERNEL_SOURCES_NORM_RMS_NORM_SPREAD_H_
#define KILN_KERNEL_SOURCES_NORM_RMS_NORM_SPREAD_H_

#include "rms_norm_rows.h"
#include "row_spread.h"

namespace kiln {

// RMSNorm, all multiprocessors for each of the longest rows.
class RMSNormSpreadKernel final : public RMSNormRows<SpreadRows> {
 public:
  static constexpr auto preferred_over = keys("rms_norm_cluster_stream");
  static Entry<RMSNormSpreadKernel> entry_for(const LayerNormCall& call) {
    return row_norm_entry<RMSNormSpreadKernel>(call);
  }
  using RMSNormRows::RMSNormRows;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_RMS_NORM_SPREAD_H_
