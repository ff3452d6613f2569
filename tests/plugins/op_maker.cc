// Makes an op while it is opened, which no plugin should: it must not wait for itself.
#include <kiln/kiln.h>
#include <kiln/plugin.h>

#include "tests/plugins/test_backend.h"

static absl::Status fill(kiln::Registry& registry) {
  const auto op = kiln::LayerNormFwdOp::create({.normalized_shape = {8}});
  if (!op.ok()) return op.status();
  kiln::test_backend::add_target(registry, "op_maker");
  return absl::OkStatus();
}
KILN_PLUGIN("op_maker", fill)
