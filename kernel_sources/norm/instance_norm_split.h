#ifndef KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_SPLIT_H_
#define KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_SPLIT_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Few and large instances, which all multiprocessors share.
class InstanceNormSplitKernel final : public InstanceNormTrainKernel<SplitSets> {
 public:
  static Refusal refusal(const BatchNormCall& c) {
    if (Refusal no = refuse_split(c.batch * c.channels, c.spatial, "instances")) return no;
    return Kernel::refusal(c);
  }
  static Entry<InstanceNormSplitKernel> entry_for(const BatchNormCall& c) {
    return instance_norm_entry<InstanceNormSplitKernel>(c);
  }
  using InstanceNormTrainKernel::InstanceNormTrainKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_SPLIT_H_
