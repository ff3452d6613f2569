#ifndef KILN_RUNTIME_TUNE_CALL_H_
#define KILN_RUNTIME_TUNE_CALL_H_

#include <kiln/device_support.h>
#include <kiln/kernel.h>
#include <kiln/signature.h>

#include "runtime/tensor_buffer.h"

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln::internal {

// Tensors of a call that a sweep owns: shaped, strided and aligned as the caller's, filled with
// numbers of its own. A caller's tensors are neither read nor written.
class TuneCall {
 public:
  // On `stream`'s device. `kernels` are asked for inputs that decide how much work is done. Errors:
  // FailedPrecondition names an integer input that none of them supplies; those of allocation.
  static absl::StatusOr<std::unique_ptr<TuneCall>> make(
      DeviceSupport& support, const Stream& stream, const Signature& signature,
      const CallArgs& args, std::span<Kernel* const> kernels, std::uint64_t seed);

  std::span<const Tensor* const> inputs() const { return input_views_; }
  std::span<const Tensor* const> outputs() const { return output_views_; }

  // What is written (outputs, and inputs written in place) is as before any run.
  absl::Status reset();
  // Takes what was written as the result that others are compared with.
  absl::Status keep_result();
  // Ok when what was written is the kept result within `tolerance_steps` (docs/numerics.md), and
  // nothing beside the tensors was written. DataLoss says which tensor and element is not.
  absl::Status check_result(double tolerance_steps);

 private:
  struct Written {
    std::string name;
    TensorBuffer* buffer = nullptr;
    std::vector<char> before;
    std::vector<char> result;      // all its bytes
    std::vector<double> elements;  // made when a result differs in its bytes
  };
  TuneCall() = default;

  std::vector<std::optional<TensorBuffer>> inputs_, outputs_;
  std::vector<const Tensor*> input_views_, output_views_;
  std::vector<Written> written_;
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_CALL_H_
