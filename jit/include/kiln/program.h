#ifndef KILN_PROGRAM_H_
#define KILN_PROGRAM_H_

#include <kiln/dtype.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kiln::inline v1 {

// A constant that reaches device code as a macro. Typed, and rendered by the runtime alone, exactly
// and whatever the locale: integers in decimal, doubles as hexadecimal literals, bools as 0 or 1,
// dtypes as `kiln::float16` and so on (kernel_sources/device/dtype.cuh defines these types).
// Infinities and NaN are refused.
using Constant = std::variant<std::int64_t, double, bool, DType>;

struct NamedConstant {
  std::string name;  // a C identifier
  Constant value;
  bool operator==(const NamedConstant&) const = default;
};

// The unit of compilation: one source with its constants. Plain value; making one compiles nothing.
struct Program {
  std::string source;  // name in the source table, "kernel_sources/norm/layer_norm.cu"
  std::vector<std::string>
      headers;  // names of the embedded headers it includes, directly or not; no other is found
  std::vector<std::string>
      kernels;  // extern "C" names to load, in the order the kernel class launches them by
  std::vector<NamedConstant> constants;
  std::vector<std::string> options;  // further compiler options; part of the compile key
  std::int64_t smem_bytes =
      0;  // most dynamic shared memory its kernels are launched with; not in the key
  bool arch_specific = false;  // wants the arch-specific target (sm_90a) where there is one
};

}  // namespace kiln::inline v1

#endif  // KILN_PROGRAM_H_
