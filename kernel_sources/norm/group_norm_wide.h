#ifndef KILN_KERNEL_SOURCES_NORM_GROUP_NORM_WIDE_H_
#define KILN_KERNEL_SOURCES_NORM_GROUP_NORM_WIDE_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Groups that the registers of one block hold: one read.
class GroupNormWideKernel final : public GroupNormKernel<WideSets> {
 public:
  static constexpr auto preferred_over = keys("group_norm_split");
  static Refusal refusal(const GroupNormCall& c) {
    if (Refusal no = refuse_wide(c.per_group(), access_width(c))) return no;
    return Kernel::refusal(c);
  }
  static Entry<GroupNormWideKernel> entry_for(const GroupNormCall& c) {
    return group_norm_entry<GroupNormWideKernel>(c);
  }
  using GroupNormKernel::GroupNormKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_GROUP_NORM_WIDE_H_
