// A plugin as it should be: an implementation, a target, and a count of how often it was filled.
#include <kiln/plugin.h>

#include "tests/plugins/test_backend.h"

#include <atomic>
#include <string>

extern "C" KILN_EXPORT std::atomic<int> good_plugin_fills;
std::atomic<int> good_plugin_fills{0};

static absl::Status fill(kiln::Registry& registry) {
  ++good_plugin_fills;
  kiln::test_backend::add_implementation(registry, "host_layer_norm");
  kiln::test_backend::add_target(registry, "good");
  return absl::OkStatus();
}
KILN_PLUGIN("good", fill)
