#ifndef KILN_KERNEL_SOURCES_GEMM_REFERENCE_H_
#define KILN_KERNEL_SOURCES_GEMM_REFERENCE_H_

#include <kiln/registry.h>

#include <span>

namespace kiln {

// The ops of this family in double on the host; signatures as kiln::Reference.
absl::Status gemm_reference(const ParamValues& params, const ParamValues& execution_params,
                            std::span<const HostTensor> inputs,
                            std::span<const HostTensor> outputs);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_GEMM_REFERENCE_H_
