// Registers half of what it has, then fails.
#include <kiln/plugin.h>

#include "tests/plugins/test_backend.h"

static absl::Status fill(kiln::Registry& registry) {
  kiln::test_backend::add_implementation(registry, "half_layer_norm");
  kiln::test_backend::add_target(registry, "half");
  return absl::UnavailableError("the other half is not installed");
}
KILN_PLUGIN("half", fill)
