#ifndef KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_SPLIT_H_
#define KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_SPLIT_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Few and large channels: all multiprocessors share each, and its second read comes out of L2.
class FwdTrainSplitKernel final : public BatchNormTrainKernel<SplitSets> {
 public:
  static Refusal refusal(const BatchNormCall& c) {
    if (Refusal no = refuse_split(c.channels, c.per_channel(), "channels")) return no;
    return Kernel::refusal(c);
  }
  static Entry<FwdTrainSplitKernel> entry_for(const BatchNormCall& c) {
    return batch_norm_entry<FwdTrainSplitKernel>(c);
  }
  using BatchNormTrainKernel::BatchNormTrainKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_SPLIT_H_
