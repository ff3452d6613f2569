#ifndef KILN_KERNEL_SOURCES_NORM_GROUP_NORM_SPLIT_H_
#define KILN_KERNEL_SOURCES_NORM_GROUP_NORM_SPLIT_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Few and large groups, which all multiprocessors share.
class GroupNormSplitKernel final : public GroupNormKernel<SplitSets> {
 public:
  static Refusal refusal(const GroupNormCall& c) {
    if (Refusal no = refuse_split(c.batch * c.groups, c.per_group(), "groups")) return no;
    return Kernel::refusal(c);
  }
  static Entry<GroupNormSplitKernel> entry_for(const GroupNormCall& c) {
    return group_norm_entry<GroupNormSplitKernel>(c);
  }
  using GroupNormKernel::GroupNormKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_GROUP_NORM_SPLIT_H_
