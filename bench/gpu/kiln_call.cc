#include "bench/gpu/kiln_call.h"

#include "runtime/dtype_convert.h"
#include "runtime/test_values.h"
#include "runtime/tools.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kiln::bench {
namespace {

std::vector<std::optional<Tensor>> tensors_at(const std::vector<std::optional<ArgSpec>>& args,
                                              std::span<void* const> data) {
  std::vector<std::optional<Tensor>> tensors;
  for (std::size_t i = 0; i < args.size(); ++i) {
    tensors.emplace_back();
    if (!args[i] || data[i] == nullptr) continue;
    const TensorSpec& spec = args[i]->spec;
    tensors.back() = Tensor::contiguous(data[i], spec.device, spec.dtype, spec.shape);
  }
  return tensors;
}

std::vector<const Tensor*> views_of(const std::vector<std::optional<Tensor>>& tensors) {
  std::vector<const Tensor*> views;
  for (const auto& tensor : tensors) views.push_back(tensor ? &*tensor : nullptr);
  return views;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KilnCall>> KilnCall::prepare(Runtime& runtime,
                                                            const Workload& workload, int device,
                                                            const std::string& only) {
  const Device where{DeviceType::cuda(), static_cast<std::uint8_t>(device)};
  KILN_ASSIGN_OR_RETURN(DeviceSupport* const support, runtime.device_support(where.type));
  std::unique_ptr<KilnCall> call(new KilnCall(*support, where));
  OpOptions options{.runtime = &runtime};
  if (!only.empty()) options.only = {only};
  KILN_ASSIGN_OR_RETURN(call->op_,
                        runtime.create_op(workload.call.op, workload.call.params, options));
  call->call_ = internal::on_device(workload.call, call->op_->signature(), where);
  for (const auto* args : {&call->call_.args.inputs, &call->call_.args.outputs}) {
    for (const auto& arg : *args) {
      if (arg && !arg->is_contiguous())
        return absl::UnimplementedError(workload.name +
                                        ": a benchmark's tensors must be contiguous");
    }
  }
  return call;
}

absl::Status KilnCall::bind(std::span<void* const> inputs, std::span<void* const> outputs) {
  if (inputs.size() != call_.args.inputs.size() || outputs.size() != call_.args.outputs.size())
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: must be bound to %d inputs and %d outputs: got %d and %d", call_.op,
        call_.args.inputs.size(), call_.args.outputs.size(), inputs.size(), outputs.size()));
  inputs_ = tensors_at(call_.args.inputs, inputs);
  outputs_ = tensors_at(call_.args.outputs, outputs);
  input_views_ = views_of(inputs_);
  output_views_ = views_of(outputs_);
  return absl::OkStatus();
}

// A block of random values of a prime count, so that no two rows of a tensor are alike, doubled on
// the device until it fills the tensor. Variances are not negative.
absl::Status KilnCall::fill(const Stream& stream, const TensorParam& param, const Tensor& tensor,
                            std::uint64_t seed) {
  constexpr std::size_t kBlock = 1000003;
  const auto element = static_cast<std::size_t>(size_of(tensor.dtype));
  const auto count = static_cast<std::size_t>(tensor.elements());
  const std::size_t first = std::min(count, kBlock);
  const internal::TestValues values(tensor.dtype, seed);
  std::vector<char> block(first * element);
  for (std::size_t i = 0; i < first; ++i) {
    if (param.name.ends_with("var"))
      internal::store_element(tensor.dtype, block.data() + i * element, std::abs(values.value(i)));
    else
      std::copy_n(values.bytes(i), element, block.data() + i * element);
  }
  auto* const data = static_cast<char*>(tensor.data);
  KILN_RETURN_IF_ERROR(support_.copy_to_device(stream, data, block.data(), block.size()));
  for (std::size_t done = first; done < count;) {
    const std::size_t more = std::min(done, count - done);
    KILN_RETURN_IF_ERROR(
        support_.copy_on_device(stream, data + done * element, data, more * element));
    done += more;
  }
  return support_.synchronize(stream);
}

absl::Status KilnCall::allocate(const std::vector<std::optional<ArgSpec>>& args,
                                const Stream& stream, std::vector<void*>& data) {
  for (const auto& arg : args) {
    data.push_back(nullptr);
    if (!arg) continue;
    KILN_ASSIGN_OR_RETURN(
        OwnedTensor owned,
        OwnedTensor::allocate(support_, stream, arg->spec.dtype, arg->spec.shape));
    data.back() = owned.tensor().data;
    owned_.push_back(std::move(owned));
  }
  return absl::OkStatus();
}

absl::Status KilnCall::bind_beside(const KilnCall& other, const Stream& stream) {
  std::vector<void*> inputs, outputs;
  for (const auto& input : other.inputs_) inputs.push_back(input ? input->data : nullptr);
  KILN_RETURN_IF_ERROR(allocate(call_.args.outputs, stream, outputs));
  KILN_RETURN_IF_ERROR(bind(inputs, outputs));
  for (const auto& output : outputs_) {
    if (!output) continue;
    const auto bytes = static_cast<std::size_t>(output->elements() * size_of(output->dtype));
    KILN_RETURN_IF_ERROR(support_.fill(stream, output->data, 0xff, bytes));
  }
  return absl::OkStatus();
}

absl::Status KilnCall::bind_own(const Stream& stream) {
  std::vector<void*> inputs, outputs;
  KILN_RETURN_IF_ERROR(allocate(call_.args.inputs, stream, inputs));
  KILN_RETURN_IF_ERROR(allocate(call_.args.outputs, stream, outputs));
  KILN_RETURN_IF_ERROR(bind(inputs, outputs));
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i])
      KILN_RETURN_IF_ERROR(fill(stream, op_->signature().inputs[i], *inputs_[i], i + 1));
  }
  return absl::OkStatus();
}

absl::Status KilnCall::call(const Stream& stream) {
  return op_->call(stream, input_views_, output_views_, call_.execution_params);
}

absl::StatusOr<std::vector<std::string>> KilnCall::implementations() {
  KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, support_.facts(device_.index));
  KILN_ASSIGN_OR_RETURN(const auto planned, tools::explain_call(*op_, call_.args, device_.type,
                                                                facts, /*look_up=*/false));
  std::vector<std::string> keys;
  if (planned.size() != 1) return keys;  // one key cannot name several kernel calls
  for (const Verdict& verdict : planned[0].selection.verdicts) {
    if (verdict.kind == VerdictKind::chosen) keys.insert(keys.begin(), verdict.key);
    if (verdict.kind == VerdictKind::lower) keys.push_back(verdict.key);
  }
  return keys;
}

absl::Status KilnCall::build(const Stream& stream) {
  return op_->prefetch(call_.args, stream.device).get();
}

absl::StatusOr<std::vector<Config>> KilnCall::configs() const {
  const std::vector<Kernel*> kernels = op_->iter_kernels();
  if (kernels.empty()) return absl::FailedPreconditionError("no kernel of the op is built yet");
  KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, support_.facts(device_.index));
  std::vector<Config> configs = kernels.front()->autotune_configs(facts);
  std::erase(configs, kernels.front()->config());
  return configs;
}

absl::Status KilnCall::use(Runtime& runtime, const Config& config) {
  return tools::load_config(runtime, *op_->iter_kernels().front(), device_, config);
}

std::string KilnCall::served_by() const {
  std::string text;
  const absl::StatusOr<std::vector<KernelCall>> plan = op_->plan(call_.args);
  if (!plan.ok()) return text;
  for (const KernelCall& kernel : *plan) {
    for (const BuiltEntry& entry : op_->built_entries(kernel.interface)) {
      const std::string config = to_string(entry.config);
      text += (text.empty() ? "" : ", ") + entry.key + (config.empty() ? "" : " ") + config;
    }
  }
  return text;
}

}  // namespace kiln::bench
