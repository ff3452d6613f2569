#ifndef KILN_JIT_METADATA_H_
#define KILN_JIT_METADATA_H_

#include <kiln/compiler.h>
#include <kiln/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace kiln::jit {

// An artifact's metadata: a JSON object with sorted keys,
//   {"kernels":[{"name":"k","registers":14,"spill_bytes":0,"stack_bytes":0,"static_smem_bytes":512}]}
// where a figure that the compiler did not tell is left out. Nothing in it differs from run to run.
// Readers skip members they do not know.
KILN_EXPORT std::string make_metadata(const std::vector<KernelInfo>& kernels);

// DataLoss: the text is not what `make_metadata` makes.
KILN_EXPORT absl::StatusOr<std::vector<KernelInfo>> kernel_infos(std::string_view metadata);

}  // namespace kiln::jit

#endif  // KILN_JIT_METADATA_H_
