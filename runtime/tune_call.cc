#include "runtime/tune_call.h"

#include "runtime/compare.h"
#include "runtime/dtype_convert.h"
#include "runtime/test_values.h"

#include <absl/strings/str_format.h>

#include <utility>

namespace kiln::internal {
namespace {

bool is_number(DType dtype) { return rounding_step(dtype, 1) != 0; }

absl::Status fill(const TensorParam& param, TensorBuffer& buffer, std::span<Kernel* const> kernels,
                  std::uint64_t seed) {
  const TensorSpec spec = buffer.tensor().spec();
  for (const Kernel* kernel : kernels) {
    const std::optional<std::vector<double>> values = kernel->tuning_input(param.name, spec);
    if (!values) continue;
    const auto wanted = static_cast<std::size_t>(numel(spec.shape));
    if (values->size() != wanted) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tuning_input of %s must give %d values for %s: got %d", param.name,
                          wanted, to_string(spec), values->size()));
    }
    buffer.set(*values);
    return buffer.upload();
  }
  if (!is_number(spec.dtype) && numel(spec.shape) > 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "input %s of %s may decide how much work is done: a kernel must supply it (tuning_input), "
        "got none",
        param.name, std::string(to_string(spec.dtype))));
  }
  buffer.set(TestValues(spec.dtype, seed));
  return buffer.upload();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuneCall>> TuneCall::make(
    DeviceSupport& support, const Stream& stream, const Signature& signature, const CallArgs& args,
    std::span<Kernel* const> kernels, std::uint64_t seed) {
  std::unique_ptr<TuneCall> call(new TuneCall);
  KILN_ASSIGN_OR_RETURN(call->inputs_,
                        allocate_all(support, stream, signature.inputs, args.inputs));
  KILN_ASSIGN_OR_RETURN(call->outputs_,
                        allocate_all(support, stream, signature.outputs, args.outputs));
  for (std::size_t i = 0; i < call->inputs_.size(); ++i) {
    std::optional<TensorBuffer>& buffer = call->inputs_[i];
    if (buffer) {
      KILN_RETURN_IF_ERROR(fill(signature.inputs[i], *buffer, kernels, seed * 1000 + i));
      if (signature.inputs[i].written)
        call->written_.push_back({signature.inputs[i].name, &*buffer, buffer->image(), {}, {}});
    }
    call->input_views_.push_back(buffer ? &buffer->tensor() : nullptr);
  }
  for (std::size_t i = 0; i < call->outputs_.size(); ++i) {
    std::optional<TensorBuffer>& buffer = call->outputs_[i];
    if (buffer)
      call->written_.push_back({signature.outputs[i].name, &*buffer, buffer->image(), {}, {}});
    call->output_views_.push_back(buffer ? &buffer->tensor() : nullptr);
  }
  KILN_RETURN_IF_ERROR(call->reset());
  KILN_RETURN_IF_ERROR(support.synchronize(stream));
  return call;
}

absl::Status TuneCall::reset() {
  for (Written& one : written_) {
    one.buffer->set_image(one.before);
    KILN_RETURN_IF_ERROR(one.buffer->upload());
  }
  return absl::OkStatus();
}

absl::Status TuneCall::keep_result() {
  for (Written& one : written_) {
    KILN_RETURN_IF_ERROR(one.buffer->download());
    one.result = one.buffer->image();
    one.elements.clear();
  }
  return absl::OkStatus();
}

absl::Status TuneCall::check_result(double tolerance_steps) {
  for (Written& one : written_) {
    KILN_RETURN_IF_ERROR(one.buffer->download());
    if (one.buffer->image() == one.result) continue;
    if (!one.buffer->surroundings_intact())
      return absl::DataLossError("memory beside " + one.name + " was written");
    const std::vector<double> got = one.buffer->elements();
    if (one.elements.empty()) {
      const std::vector<char> mine = one.buffer->image();
      one.buffer->set_image(one.result);
      one.elements = one.buffer->elements();
      one.buffer->set_image(mine);
    }
    const Difference worst = compare(one.buffer->tensor().dtype, got, one.elements);
    if (worst.max_steps > tolerance_steps) {
      return absl::DataLossError(absl::StrFormat(
          "%s[%d] must be the default's %g within %g steps: got %g, which is %.3g steps away",
          one.name, worst.where, worst.want, tolerance_steps, worst.got, worst.max_steps));
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln::internal
