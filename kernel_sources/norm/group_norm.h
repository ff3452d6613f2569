#ifndef KILN_KERNEL_SOURCES_NORM_GROUP_NORM_H_
#define KILN_KERNEL_SOURCES_NORM_GROUP_NORM_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Every call: a block for each group, read twice.
class GroupNormStreamKernel final : public GroupNormKernel<StreamSets> {
 public:
  static constexpr bool general = true;
  static Entry<GroupNormStreamKernel> entry_for(const GroupNormCall& c) {
    return group_norm_entry<GroupNormStreamKernel>(c);
  }
  using GroupNormKernel::GroupNormKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_GROUP_NORM_H_
