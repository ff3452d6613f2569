#ifndef KILN_JIT_TARGET_H_
#define KILN_JIT_TARGET_H_

#include <kiln/export.h>
#include <kiln/status.h>

#include <string>
#include <string_view>

namespace kiln::jit {

// What CUDA code is compiled for: an arch ("sm_90") or its arch-specific form ("sm_90a").
struct CudaTarget {
  int arch = 0;
  bool arch_specific = false;
  bool operator==(const CudaTarget&) const = default;
};

// The one map from an arch and a program's wish to the compiler's word: "sm_90a" where the
// arch-specific form is wanted and exists (from 90 on), else "sm_90".
KILN_EXPORT std::string target_name(int arch, bool arch_specific);

// "90", "sm_90", "90a" or "sm_90a". InvalidArgument for any other text; the message names the archs
// that are known.
KILN_EXPORT absl::StatusOr<CudaTarget> parse_target(std::string_view text);

// The first CUDA Toolkit that compiles for `arch`, "12.9"; empty for an arch that Kiln does not
// know.
KILN_EXPORT std::string first_toolkit_of(int arch);

}  // namespace kiln::jit

#endif  // KILN_JIT_TARGET_H_
