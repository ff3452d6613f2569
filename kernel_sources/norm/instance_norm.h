#ifndef KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_H_
#define KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Every call: a block for each instance, read twice.
class InstanceNormKernel final : public InstanceNormTrainKernel<StreamSets> {
 public:
  static constexpr bool general = true;
  static Entry<InstanceNormKernel> entry_for(const BatchNormCall& c) {
    return instance_norm_entry<InstanceNormKernel>(c);
  }
  using InstanceNormTrainKernel::InstanceNormTrainKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_H_
