#ifndef KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_KERNEL_H_
#define KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_KERNEL_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Every call: a block for each channel, read twice.
class FwdTrainKernel final : public BatchNormTrainKernel<StreamSets> {
 public:
  static constexpr bool general = true;
  static Entry<FwdTrainKernel> entry_for(const BatchNormCall& c) {
    return batch_norm_entry<FwdTrainKernel>(c);
  }
  using BatchNormTrainKernel::BatchNormTrainKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_KERNEL_H_
