#include "cpu_backend.h"

#include <kiln/sources.h>

#include "cpu_layer_norm.h"
#include "cpu_layer_norm_short.h"
#include "cpu_support.h"

#include <cstdlib>
#include <memory>

namespace kiln {

void add_sources_kiln_cpu_objects(SourceTable& table);  // generated

absl::Status fill_cpu_backend(Registry& registry) {
  cpu::CpuSupportOptions options;
  if (const char* compiler = std::getenv("KILN_CXX"); compiler != nullptr && *compiler != '\0') {
    options.compiler.compiler = compiler;
  }
  registry.register_device_support(std::make_shared<cpu::CpuSupport>(options));
  SourceTable sources;
  add_sources_kiln_cpu_objects(sources);
  registry.add_sources(sources);
  registry.register_kernel_type("LayerNormFwdOp", "cpu_layer_norm",
                                kernel_type<cpu::CpuLayerNormKernel>());
  registry.register_kernel_type("LayerNormFwdOp", "cpu_layer_norm_short",
                                kernel_type<cpu::CpuLayerNormShortKernel>());
  return absl::OkStatus();
}

}  // namespace kiln
