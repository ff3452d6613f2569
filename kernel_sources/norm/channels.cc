#include "channels.h"

#include <absl/strings/str_format.h>

#include <cmath>
#include <string>

namespace kiln {
namespace {

std::int64_t spatial_of(const Dims& shape) {
  std::int64_t n = 1;
  for (int i = 2; i < shape.size(); ++i) n *= shape[i];
  return n;
}

}  // namespace

Tensor as_channels(const Tensor& x) {
  return Tensor::contiguous(x.data, x.device, x.dtype,
                            {x.shape[0], x.shape[1], spatial_of(x.shape)});
}

BatchNormCall channels_call(const TensorSpec& x, double eps, double momentum) {
  BatchNormCall call;
  call.batch = x.shape[0];
  call.channels = x.shape[1];
  call.spatial = spatial_of(x.shape);
  call.eps = eps;
  call.momentum = momentum;
  call.dtype = x.dtype;
  call.where.device = x.device;
  return call;
}

absl::Status check_channels(std::string_view op, const CallArgs& args, double eps, double momentum,
                            bool by_running) {
  const std::string name(op);
  if (!std::isfinite(eps) || eps < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: eps must be finite and at least 0: got %g", name, eps));
  }
  if (!(momentum >= 0 && momentum <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: momentum must be from 0 to 1: got %g", name, momentum));
  }
  const bool mean = args.inputs[1].has_value(), var = args.inputs[2].has_value();
  if (mean != var) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: running_mean and running_var must be passed both or neither: got "
                        "only %s",
                        name, mean ? "running_mean" : "running_var"));
  }
  if (by_running && !mean) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: running_mean and running_var must be passed where the input's own statistics are not "
        "used: got none",
        name));
  }
  return absl::OkStatus();
}

}  // namespace kiln
