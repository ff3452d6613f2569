#include "row_norm_family.h"

#include <kiln/ops/layer_norm.h>

#include "layer_norm.h"
#include "layer_norm_cluster.h"
#include "layer_norm_cluster_stream.h"
#include "layer_norm_stream.h"
#include "layer_norm_warp.h"
#include "reference.h"

namespace kiln {

void register_row_norms(Registry& registry) {
  registry.add_op<LayerNormFwdOp>();
  registry.add_reference("LayerNormFwdOp", layer_norm_reference);
  registry.add<LayerNormFwdOp, LayerNormKernel>("layer_norm");
  registry.add<LayerNormFwdOp, LayerNormWarpKernel>("layer_norm_warp");
  registry.add<LayerNormFwdOp, LayerNormClusterKernel>("layer_norm_cluster");
  registry.add<LayerNormFwdOp, LayerNormStreamKernel>("layer_norm_stream");
  registry.add<LayerNormFwdOp, LayerNormClusterStreamKernel>("layer_norm_cluster_stream");
}

}  // namespace kiln
