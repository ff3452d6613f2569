#ifndef KILN_KERNEL_SOURCES_NORM_BATCH_NORM_REFERENCE_H_
#define KILN_KERNEL_SOURCES_NORM_BATCH_NORM_REFERENCE_H_

#include <kiln/registry.h>

#include <span>

namespace kiln {

// Batch, instance and group normalization in double on the host; signatures as kiln::Reference.
// Instance norm by running statistics does not round these to x's dtype, which it cannot see: for
// float16 and bfloat16 give it values that are exact there.
absl::Status batch_norm_reference(const ParamValues& params, const ParamValues& execution_params,
                                  std::span<const HostTensor> inputs,
                                  std::span<const HostTensor> outputs);
absl::Status instance_norm_reference(const ParamValues& params, const ParamValues& execution_params,
                                     std::span<const HostTensor> inputs,
                                     std::span<const HostTensor> outputs);
absl::Status group_norm_reference(const ParamValues& params, const ParamValues& execution_params,
                                  std::span<const HostTensor> inputs,
                                  std::span<const HostTensor> outputs);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_BATCH_NORM_REFERENCE_H_
