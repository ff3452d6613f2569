// In the tree gemm's family.cc registers the class; here a plugin does, so that the tests build the
// guide's example.
#include <kiln/plugin.h>
#include <kiln/sources.h>

#include "gemm_short.h"

namespace kiln {
void add_sources_kiln_example_kernel(SourceTable& table);  // generated
}

static absl::Status fill(kiln::Registry& registry) {
  kiln::SourceTable sources;
  kiln::add_sources_kiln_example_kernel(sources);
  registry.add_sources(sources);
  registry.register_kernel_type("GemmFwdOp", "gemm_short",
                                kiln::kernel_type<kiln::GemmShortKernel>());
  return absl::OkStatus();
}
KILN_PLUGIN("example_kernel", fill)
