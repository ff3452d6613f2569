#include "batch_norm_family.h"

#include "batch_norm_reference.h"
#include "fwd_infer_kernel.h"
#include "fwd_train_kernel.h"
#include "fwd_train_split.h"
#include "fwd_train_whole.h"
#include "fwd_train_wide.h"
#include "group_norm.h"
#include "group_norm_split.h"
#include "group_norm_wide.h"
#include "instance_norm.h"
#include "instance_norm_channel.h"
#include "instance_norm_infer.h"
#include "instance_norm_split.h"
#include "instance_norm_wide.h"

namespace kiln {

void register_batch_norms(Registry& registry) {
  registry.add_op<BatchNormFwdOp>();
  registry.add<BatchNormFwdOp, FwdTrainWholeKernel>("fwd_train_whole");
  registry.add<BatchNormFwdOp, FwdTrainWideKernel>("fwd_train_wide");
  registry.add<BatchNormFwdOp, FwdTrainSplitKernel>("fwd_train_split");
  registry.add<BatchNormFwdOp, FwdTrainKernel>("fwd_train_kernel");
  registry.add<BatchNormFwdOp, FwdInferKernel>("fwd_infer_kernel");
  registry.add_reference("BatchNormFwdOp", batch_norm_reference);

  registry.add_op<InstanceNormFwdOp>();
  registry.add<InstanceNormFwdOp, InstanceNormChannelKernel>("instance_norm_channel");
  registry.add<InstanceNormFwdOp, InstanceNormWideKernel>("instance_norm_wide");
  registry.add<InstanceNormFwdOp, InstanceNormSplitKernel>("instance_norm_split");
  registry.add<InstanceNormFwdOp, InstanceNormKernel>("instance_norm");
  registry.add<InstanceNormFwdOp, InstanceNormInferKernel>("instance_norm_infer");
  registry.add_reference("InstanceNormFwdOp", instance_norm_reference);

  registry.add_op<GroupNormFwdOp>();
  registry.add<GroupNormFwdOp, GroupNormWideKernel>("group_norm_wide");
  registry.add<GroupNormFwdOp, GroupNormSplitKernel>("group_norm_split");
  registry.add<GroupNormFwdOp, GroupNormStreamKernel>("group_norm");
  registry.add_reference("GroupNormFwdOp", group_norm_reference);
}

}  // namespace kiln
