// Registers a key that good.cc has, beside a target of its own.
#include <kiln/plugin.h>

#include "tests/plugins/test_backend.h"

static absl::Status fill(kiln::Registry& registry) {
  kiln::test_backend::add_target(registry, "clash");
  kiln::test_backend::add_implementation(registry, "host_layer_norm");
  return absl::OkStatus();
}
KILN_PLUGIN("clash", fill)
