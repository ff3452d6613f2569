#ifndef KILN_BACKENDS_CPU_CPU_BACKEND_H_
#define KILN_BACKENDS_CPU_CPU_BACKEND_H_

#include <kiln/registry.h>
#include <kiln/status.h>

namespace kiln {

// Registers the CPU backend: the device type "cpu", its kernels and their sources. The plugin's
// function; where the backend is linked into the program (a portable build) the runtime calls it.
// Compiles nothing and probes nothing. The compiler is c++ on the system's path, or what the
// environment variable KILN_CXX names.
absl::Status fill_cpu_backend(Registry& registry);

}  // namespace kiln

#endif  // KILN_BACKENDS_CPU_CPU_BACKEND_H_
