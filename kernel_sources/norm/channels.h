#ifndef KILN_KERNEL_SOURCES_NORM_CHANNELS_H_
#define KILN_KERNEL_SOURCES_NORM_CHANNELS_H_

#include <kiln/op.h>
#include <kiln/ops/batch_norm_call.h>

#include <string_view>

namespace kiln {

// x [B, C, *L] as [B, C, S].
Tensor as_channels(const Tensor& x);

// The call spec of x, with the alignment left as it is.
BatchNormCall channels_call(const TensorSpec& x, double eps, double momentum);

// What batch and instance norm want beyond their signature, whose inputs are x, running_mean,
// running_var, …. `by_running`: the running statistics are needed.
absl::Status check_channels(std::string_view op, const CallArgs& args, double eps, double momentum,
                            bool by_running);

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_CHANNELS_H_
