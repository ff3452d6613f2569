#include <kiln/ops/layer_norm.h>
#include <kiln/registry.h>

#include "batch_norm_family.h"
#include "reference.h"

namespace kiln {

void register_norm(Registry& registry);
void register_norm(Registry& registry) {
  registry.add_op<LayerNormFwdOp>();
  registry.add_reference("LayerNormFwdOp", layer_norm_reference);
  register_batch_norms(registry);
}

}  // namespace kiln
