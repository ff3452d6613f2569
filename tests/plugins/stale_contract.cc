// What a plugin registers that was built against another version of LayerNormFwdInterface.
#include <kiln/plugin.h>

#include "tests/plugins/test_backend.h"

static absl::Status fill(kiln::Registry& registry) {
  kiln::KernelType type = kiln::kernel_type<kiln::test_backend::HostLayerNorm>();
  type.contract ^= 1;
  registry.register_kernel_type("LayerNormFwdOp", "stale_layer_norm", type);
  return absl::OkStatus();
}
KILN_PLUGIN("stale_contract", fill)
