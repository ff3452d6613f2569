// What the plugin registers. Filling the registry compiles nothing and touches no device.
#include <kiln/plugin.h>

#include "acme_device.h"
#include "acme_layer_norm.h"

#include <memory>

static absl::Status fill(kiln::Registry& registry) {
  KILN_ASSIGN_OR_RETURN(const kiln::DeviceType acme, kiln::DeviceType::named("acme"));
  registry.register_device_support(std::make_shared<acme::AcmeDevice>(acme));
  // The target: it claims its devices, and has a builder for each op that it serves.
  registry.register_detector("acme",
                             [acme](const kiln::Device& device) { return device.type == acme; });
  registry.register_kernel_builder("LayerNormFwdOp", "acme", acme::build_layer_norm);
  // One more implementation beside the in-tree ones, on a device type that Kiln has.
  registry.register_kernel_type("LayerNormFwdOp", "acme_host_layer_norm",
                                kiln::kernel_type<acme::HostLayerNormKernel>());
  return absl::OkStatus();
}

KILN_PLUGIN("acme", fill)
