#ifndef KILN_TARGET_H_
#define KILN_TARGET_H_

#include <kiln/device.h>
#include <kiln/kernel.h>
#include <kiln/signature.h>
#include <kiln/status.h>
#include <kiln/tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

// Targets: the name a backend gives its own set of kernels. A target that is selected for an op
// instance serves every call of it (but those whose written tensors are all empty, which nobody
// serves).
namespace kiln::inline v1 {

// The target that forces the in-tree kernels.
inline constexpr std::string_view kBuiltin = "builtin";

// What a target's builder returns for the specs of a call. Called from many threads.
class KILN_EXPORT TargetKernel {
 public:
  virtual ~TargetKernel() = default;
  // `inputs` in signature order (nullptr: not passed), `outputs` the caller's buffers in signature
  // order, `execution_params` by name. The call has passed the signature's checks; every tensor is
  // on the stream's device but those declared host; inputs that are not written are contiguous.
  virtual absl::Status run(const Stream& stream, std::span<const Tensor* const> inputs,
                           std::span<const Tensor* const> outputs,
                           const ParamValues& execution_params) = 0;
  // Turns on tuning; false when it cannot tune.
  virtual bool request_tune() { return false; }
  // The configuration in force, if it has one.
  virtual std::optional<Config> config() const { return std::nullopt; }
};

// Makes the kernel for one set of input specs (nullopt: the optional input is not passed) and the
// op's parameters.
using BuildTargetKernel = std::function<absl::StatusOr<std::unique_ptr<TargetKernel>>(
    std::span<const std::optional<TensorSpec>> inputs, const ParamValues& params)>;

// True when the target wants to serve calls on a device.
using Detect = std::function<bool(const Device& device)>;

}  // namespace kiln::inline v1

#endif  // KILN_TARGET_H_
