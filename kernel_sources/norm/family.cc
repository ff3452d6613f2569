#include <kiln/ops/layer_norm.h>
#include <kiln/registry.h>

#include "reference.h"

namespace kiln {

void register_norm(Registry& registry);
void register_norm(Registry& registry) {
  registry.add_op<LayerNormFwdOp>();
  registry.add_reference("LayerNormFwdOp", layer_norm_reference);
}

}  // namespace kiln
