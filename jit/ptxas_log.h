#ifndef KILN_JIT_PTXAS_LOG_H_
#define KILN_JIT_PTXAS_LOG_H_

#include <kiln/compiler.h>
#include <kiln/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace kiln::jit {

// A compiler log in two: what the assembler's verbose mode said of each kernel, and all the rest.
struct PtxasLog {
  std::vector<KernelInfo> kernels;  // in the log's order
  std::string rest;                 // warnings and errors; empty when there are none
};

// Lines of the verbose mode:
//   ptxas info    : Compiling entry function 'k' for 'sm_90a'
//   ptxas info    : Function properties for k
//   ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
//   ptxas info    : Used 14 registers, used 1 barriers, 512 bytes smem
// Figures of device functions that were not inlined are not counted to a kernel. Independent of the
// locale.
KILN_EXPORT PtxasLog parse_ptxas_log(std::string_view log);

}  // namespace kiln::jit

#endif  // KILN_JIT_PTXAS_LOG_H_
