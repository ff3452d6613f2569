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
#include "layer_norm_stream.h"
#include "layer_norm_warp.h"
#include "reference.h"
#include "rms_norm.h"
#include "rms_norm_cluster.h"
#include "rms_norm_cluster_stream.h"
#include "rms_norm_stream.h"
#include "rms_norm_warp.h"

namespace kiln {

void register_row_norms(Registry& registry) {
  registry.add_op<LayerNormFwdOp>();
  registry.add_reference("LayerNormFwdOp", layer_norm_reference);
  registry.add<LayerNormFwdOp, LayerNormKernel>("layer_norm");
  registry.add<LayerNormFwdOp, LayerNormWarpKernel>("layer_norm_warp");
  registry.add<LayerNormFwdOp, LayerNormClusterKernel>("layer_norm_cluster");
  registry.add<LayerNormFwdOp, LayerNormStreamKernel>("layer_norm_stream");
  registry.add<LayerNormFwdOp, LayerNormClusterStreamKernel>("layer_norm_cluster_stream");

  registry.add_op<RMSNormFwdOp>();
  registry.add_reference("RMSNormFwdOp", rms_norm_reference);
  registry.add<RMSNormFwdOp, RMSNormKernel>("rms_norm");
  registry.add<RMSNormFwdOp, RMSNormWarpKernel>("rms_norm_warp");
  registry.add<RMSNormFwdOp, RMSNormClusterKernel>("rms_norm_cluster");
  registry.add<RMSNormFwdOp, RMSNormStreamKernel>("rms_norm_stream");
  registry.add<RMSNormFwdOp, RMSNormClusterStreamKernel>("rms_norm_cluster_stream");

  registry.add_op<FusedAddLayerNormFwdOp>();
  registry.add_reference("FusedAddLayerNormFwdOp", fused_add_layer_norm_reference);
  registry.add<FusedAddLayerNormFwdOp, FusedAddLayerNormKernel>("fused_add_layer_norm");
  registry.add<FusedAddLayerNormFwdOp, FusedAddLayerNormWarpKernel>("fused_add_layer_norm_warp");
  registry.add<FusedAddLayerNormFwdOp, FusedAddLayerNormClusterKernel>(
      "fused_add_layer_norm_cluster");
  registry.add<FusedAddLayerNormFwdOp, FusedAddLayerNormStreamKernel>(
      "fused_add_layer_norm_stream");
  registry.add<FusedAddLayerNormFwdOp, FusedAddLayerNormClusterStreamKernel>(
      "fused_add_layer_norm_cluster_stream");

  registry.add_op<FusedAddRMSNormFwdOp>();
  registry.add_reference("FusedAddRMSNormFwdOp", fused_add_rms_norm_reference);
  registry.add<FusedAddRMSNormFwdOp, FusedAddRMSNormKernel>("fused_add_rms_norm");
  registry.add<FusedAddRMSNormFwdOp, FusedAddRMSNormWarpKernel>("fused_add_rms_norm_warp");
  registry.add<FusedAddRMSNormFwdOp, FusedAddRMSNormClusterKernel>("fused_add_rms_norm_cluster");
  registry.add<FusedAddRMSNormFwdOp, FusedAddRMSNormStreamKernel>("fused_add_rms_norm_stream");
  registry.add<FusedAddRMSNormFwdOp, FusedAddRMSNormClusterStreamKernel>(
      "fused_add_rms_norm_cluster_stream");

  registry.add_op<AdaLayerNormFwdOp>();
  registry.add_reference("AdaLayerNormFwdOp", ada_layer_norm_reference);
  registry.add<AdaLayerNormFwdOp, AdaLayerNormKernel>("ada_layer_norm");
  registry.add<AdaLayerNormFwdOp, AdaLayerNormWarpKernel>("ada_layer_norm_warp");
  registry.add<AdaLayerNormFwdOp, AdaLayerNormClusterKernel>("ada_layer_norm_cluster");
  registry.add<AdaLayerNormFwdOp, AdaLayerNormStreamKernel>("ada_layer_norm_stream");
  registry.add<AdaLayerNormFwdOp, AdaLayerNormClusterStreamKernel>("ada_layer_norm_cluster_stream");

  registry.add_op<AdaLayerNormZeroFwdOp>();
  registry.add_reference("AdaLayerNormZeroFwdOp", ada_layer_norm_zero_reference);
  registry.add<AdaLayerNormZeroFwdOp, AdaLayerNormZeroKernel>("ada_layer_norm_zero");
  registry.add<AdaLayerNormZeroFwdOp, AdaLayerNormZeroWarpKernel>("ada_layer_norm_zero_warp");
  registry.add<AdaLayerNormZeroFwdOp, AdaLayerNormZeroClusterKernel>("ada_layer_norm_zero_cluster");
  registry.add<AdaLayerNormZeroFwdOp, AdaLayerNormZeroStreamKernel>("ada_layer_norm_zero_stream");
  registry.add<AdaLayerNormZeroFwdOp, AdaLayerNormZeroClusterStreamKernel>(
      "ada_layer_norm_zero_cluster_stream");
}

}  // namespace kiln
