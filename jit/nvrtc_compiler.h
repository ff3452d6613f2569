#ifndef KILN_JIT_NVRTC_COMPILER_H_
#define KILN_JIT_NVRTC_COMPILER_H_

#include <kiln/compiler.h>
#include <kiln/export.h>

#include "jit/nvrtc_library.h"

#include <memory>

namespace kiln::jit {

// Compiles CUDA C++ (C++20) in this process. Targets: "sm_90", "sm_90a" (kind "cubin"),
// "compute_90" (kind "ptx"). The library is opened by the first call of `id` or `compile`; a
// failure is not remembered, so that installing the toolkit helps a process that runs. Headers are
// given in memory under the request's names; beyond them only the toolkit's own include folder is
// searched. With `-lineinfo` the image names that folder, so equal bytes are not promised.
KILN_EXPORT std::unique_ptr<Compiler> make_nvrtc_compiler(const NvrtcOptions& options = {});

}  // namespace kiln::jit

#endif  // KILN_JIT_NVRTC_COMPILER_H_
