#ifndef KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_WIDE_H_
#define KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_WIDE_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Instances that the registers of one block hold: one read.
class InstanceNormWideKernel final : public InstanceNormTrainKernel<WideSets> {
 public:
  static constexpr auto preferred_over = keys("instance_norm_split");
  static Refusal refusal(const BatchNormCall& c) {
    if (Refusal no = refuse_wide(c.spatial, access_width(c))) return no;
    return Kernel::refusal(c);
  }
  static Entry<InstanceNormWideKernel> entry_for(const BatchNormCall& c) {
    return instance_norm_entry<InstanceNormWideKernel>(c);
  }
  using InstanceNormTrainKernel::InstanceNormTrainKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_INSTANCE_NORM_WIDE_H_
