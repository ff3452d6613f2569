#include "row_norm_family.h"

#include <kiln/ops/ada_layer_norm.h>
#include <kiln/ops/ada_layer_norm_zero.h>
#include <kiln/ops/fused_add_layer_norm.h>
#include <kiln/ops/fused_add_rms_norm.h>
#include <kiln/ops/layer_norm.h>
#include <kiln/ops/rms_norm.h>

#include "ada_layer_norm.h"
#include "ada_layer_norm_cluster.h"
#include "ada_layer_norm_cluster_stream.h"
#include "ada_layer_norm_stream.h"
#include "ada_layer_norm_warp.h"
#include "ada_layer_norm_zero.h"
#include "ada_layer_norm_zero_cluster.h"
#include "ada_layer_norm_zero_cluster_stream.h"
#include "ada_layer_norm_zero_stream.h"
#include "ada_layer_norm_zero_warp.h"
#include "fused_add_layer_norm.h"
#include "fused_add_layer_norm_cluster.h"
#include "fused_add_layer_norm_cluster_stream.h"
#include "fused_add_layer_norm_stream.h"
#include "fused_add_layer_norm_warp.h"
#include "fused_add_rms_norm.h"
#include "fused_add_rms_norm_cluster.h"
#include "fused_add_rms_norm_cluster_stream.h"
#include "fused_add_rms_norm_stream.h"
#include "fused_add_rms_norm_warp.h"
#include "layer_norm.h"
#include "layer_norm_cluster.h"
#include "layer_norm_cluster_stream.h"
#include "layer_norm_queue.h"
#include "layer_norm_spread.h"
#include "layer_norm_stream.h"
#include "layer_norm_warp.h"
#include "reference.h"
#include "rms_norm.h"
#include "rms_norm_cluster.h"
#include "rms_norm_cluster_stream.h"
#include "rms_norm_queue.h"
#include "rms_norm_spread.h"
#include "rms_norm_stream.h"
#include "rms_norm_warp.h"

#include <string>

namespace kiln {
namespace {

// An op and its implementations, whose keys are the form's name and that of the placement.
template <class OpT, class Block, class Warp, class Cluster, class Stream, class ClusterStream>
void add_form(Registry& registry, const std::string& name, const Reference& reference) {
  registry.add_op<OpT>();
  registry.add_reference(OpT::signature().op, reference);
  registry.add<OpT, Block>(name);
  registry.add<OpT, Warp>(name + "_warp");
  registry.add<OpT, Cluster>(name + "_cluster");
  registry.add<OpT, Stream>(name + "_stream");
  registry.add<OpT, ClusterStream>(name + "_cluster_stream");
}

}  // namespace

void register_row_norms(Registry& registry) {
  add_form<LayerNormFwdOp, LayerNormKernel, LayerNormWarpKernel, LayerNormClusterKernel,
           LayerNormStreamKernel, LayerNormClusterStreamKernel>(registry, "layer_norm",
                                                                layer_norm_reference);
  registry.add<LayerNormFwdOp, LayerNormQueueKernel>("layer_norm_queue");
  registry.add<LayerNormFwdOp, LayerNormSpreadKernel>("layer_norm_spread");
  add_form<RMSNormFwdOp, RMSNormKernel, RMSNormWarpKernel, RMSNormClusterKernel,
           RMSNormStreamKernel, RMSNormClusterStreamKernel>(registry, "rms_norm",
                                                            rms_norm_reference);
  registry.add<RMSNormFwdOp, RMSNormQueueKernel>("rms_norm_queue");
  registry.add<RMSNormFwdOp, RMSNormSpreadKernel>("rms_norm_spread");
  add_form<FusedAddLayerNormFwdOp, FusedAddLayerNormKernel, FusedAddLayerNormWarpKernel,
           FusedAddLayerNormClusterKernel, FusedAddLayerNormStreamKernel,
           FusedAddLayerNormClusterStreamKernel>(registry, "fused_add_layer_norm",
                                                 fused_add_layer_norm_reference);
  add_form<FusedAddRMSNormFwdOp, FusedAddRMSNormKernel, FusedAddRMSNormWarpKernel,
           FusedAddRMSNormClusterKernel, FusedAddRMSNormStreamKernel,
           FusedAddRMSNormClusterStreamKernel>(registry, "fused_add_rms_norm",
                                               fused_add_rms_norm_reference);
  add_form<AdaLayerNormFwdOp, AdaLayerNormKernel, AdaLayerNormWarpKernel, AdaLayerNormClusterKernel,
           AdaLayerNormStreamKernel, AdaLayerNormClusterStreamKernel>(registry, "ada_layer_norm",
                                                                      ada_layer_norm_reference);
  add_form<AdaLayerNormZeroFwdOp, AdaLayerNormZeroKernel, AdaLayerNormZeroWarpKernel,
           AdaLayerNormZeroClusterKernel, AdaLayerNormZeroStreamKernel,
           AdaLayerNormZeroClusterStreamKernel>(registry, "ada_layer_norm_zero",
                                                ada_layer_norm_zero_reference);
}

}  // namespace kiln
