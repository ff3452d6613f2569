// Registers something, then throws.
#include <kiln/plugin.h>

#include "tests/plugins/test_backend.h"

#include <stdexcept>

static absl::Status fill(kiln::Registry& registry) {
  kiln::test_backend::add_target(registry, "throwing");
  throw std::runtime_error("the bus is on fire");
}
KILN_PLUGIN("throwing", fill)
