#ifndef KILN_KERNEL_SOURCES_NORM_REFERENCE_H_
#define KILN_KERNEL_SOURCES_NORM_REFERENCE_H_

#include <kiln/registry.h>

#include <span>

namespace kiln {

// The row norms in double on the host; signatures as kiln::Reference. Sums of the fused forms are
// not rounded: kernels round them to the dtype, which the tolerance covers.
absl::Status layer_norm_reference(const ParamValues& params, const ParamValues& execution_params,
                                  std::span<const HostTensor> inputs,
                                  std::span<const HostTensor> outputs);

absl::Status rms_norm_reference(const ParamValues& params, const ParamValues& execution_params,
                                std::span<const HostTensor> inputs,
                                std::span<const HostTensor> outputs);

absl::Status fused_add_layer_norm_reference(const ParamValues& params,
                                            const ParamValues& execution_params,
                                            std::span<const HostTensor> inputs,
                                            std::span<const HostTensor> outputs);

absl::Status fused_add_rms_norm_reference(const ParamValues& params,
                                          const ParamValues& execution_params,
                                          std::span<const HostTensor> inputs,
                                          std::span<const HostTensor> outputs);

absl::Status ada_layer_norm_reference(const ParamValues& params,
                                      const ParamValues& execution_params,
                                      std::span<const HostTensor> inputs,
                                      std::span<const HostTensor> outputs);

absl::Status ada_layer_norm_zero_reference(const ParamValues& params,
                                           const ParamValues& execution_params,
                                           std::span<const HostTensor> inputs,
                                           std::span<const HostTensor> outputs);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_REFERENCE_H_
