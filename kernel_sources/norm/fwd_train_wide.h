#ifndef KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_WIDE_H_
#define KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_WIDE_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Channels that the registers of one block hold: one read.
class FwdTrainWideKernel final : public BatchNormTrainKernel<WideSets> {
 public:
  static constexpr auto preferred_over = keys("fwd_train_split");
  static Refusal refusal(const BatchNormCall& c) {
    if (Refusal no = refuse_wide(c.per_channel(), access_width(c))) return no;
    return Kernel::refusal(c);
  }
  static Entry<FwdTrainWideKernel> entry_for(const BatchNormCall& c) {
    return batch_norm_entry<FwdTrainWideKernel>(c);
  }
  using BatchNormTrainKernel::BatchNormTrainKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_WIDE_H_
