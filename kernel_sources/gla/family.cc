#include <kiln/ops/gla.h>
#include <kiln/registry.h>

#include "gla_decode.h"
#include "gla_prefill.h"
#include "reference.h"

namespace kiln {

void register_gla(Registry& registry);
void register_gla(Registry& registry) {
  registry.add_op<GlaFwdOp>();
  registry.add_reference("GlaFwdOp", gla_reference);
  registry.add<GlaFwdOp, GlaPrefillKernel>("gla_prefill");
  registry.add<GlaFwdOp, GlaDecodeKernel>("gla_decode");
}

}  // namespace kiln
