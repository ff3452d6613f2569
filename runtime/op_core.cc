#include "runtime/op_core.h"

#include "base/log.h"
#include "base/process.h"
#include "runtime/check_kernel_types.h"
#include "runtime/guarded.h"
#include "runtime/runtime_impl.h"
#include "runtime/tune_loading.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <bit>

namespace kiln::internal {
namespace {

constexpr std::uint64_t kPresent = 1, kContiguous = 2, kNull = 4;

// Tensor::is_contiguous on the path of every call: innermost dimension first, and nothing is made.
bool lies_row_major(const Tensor& tensor) {
  if (tensor.strides.size() != tensor.shape.size()) return false;
  std::uint64_t stride = 1;  // may wrap around: extents are not checked yet
  bool dense = true;
  for (int i = tensor.shape.size() - 1; i >= 0; --i) {
    const std::int64_t extent = tensor.shape[i];
    if (extent == 0) return true;
    dense &= extent == 1 || static_cast<std::uint64_t>(tensor.strides[i]) == stride;
    stride *= static_cast<std::uint64_t>(extent);
  }
  return dense;
}

bool append(const Tensor* tensor, std::uint64_t* words, std::size_t& at) {
  if (tensor == nullptr) {
    if (at >= kMaxCallWords) return false;
    words[at++] = 0;
    return true;
  }
  const bool contiguous = lies_row_major(*tensor);
  const auto rank = static_cast<std::size_t>(tensor->shape.size());
  if (at + 1 + rank * (contiguous ? 1 : 2) > kMaxCallWords) return false;
  words[at++] = kPresent | (contiguous ? kContiguous : 0) | (tensor->data == nullptr ? kNull : 0) |
                static_cast<std::uint64_t>(tensor->dtype) << 8 | rank << 16 |
                static_cast<std::uint64_t>(tensor->strides.size()) << 20 |
                static_cast<std::uint64_t>(tensor->alignment()) << 24 |
                device_word(tensor->device) << 32;
  for (std::size_t i = 0; i < rank; ++i)
    words[at++] = static_cast<std::uint64_t>(tensor->shape[static_cast<int>(i)]);
  for (std::size_t i = 0; !contiguous && i < rank; ++i) {
    words[at++] = static_cast<std::uint64_t>(tensor->strides[static_cast<int>(i)]);
  }
  return true;
}

}  // namespace

std::size_t call_words(const Stream& stream, std::span<const Tensor* const> inputs,
                       std::span<const Tensor* const> outputs, std::uint64_t* words) {
  std::size_t at = 0;
  words[at++] = device_word(stream.device) << 8 | inputs.size();
  for (const Tensor* t : inputs) {
    if (!append(t, words, at)) return 0;
  }
  for (const Tensor* t : outputs) {
    if (!append(t, words, at)) return 0;
  }
  return at;
}

}  // namespace kiln::internal

namespace kiln::inline v1 {
namespace {

using internal::Candidates;
using internal::Dispatcher;

// Calls remembered by one op at most.
constexpr std::size_t kMaxRememberedCalls = 1024;

// The user's lists: unknown keys are an error in the op's own options, and pass in the process's
// (KILN_SELECT names keys of many ops).
absl::Status check_listed(const OpType& type, const std::vector<KernelRow>& rows,
                          const std::vector<std::string>& keys, const char* list) {
  for (const std::string& key : keys) {
    if (std::none_of(rows.begin(), rows.end(), [&](const KernelRow& r) { return r.key == key; })) {
      return absl::NotFoundError(absl::StrFormat(
          "%s: option %s names implementations of the op: want one of %s, got %s",
          type.signature.op, list,
          absl::StrJoin(rows, ", ",
                        [](std::string* out, const KernelRow& r) { out->append(r.key); }),
          key));
    }
  }
  return absl::OkStatus();
}

bool listed(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// `only` holds for an interface when it names one of its keys.
void apply_lists(std::vector<KernelRow>& rows, const std::vector<std::string>& only,
                 const std::vector<std::string>& exclude) {
  const bool some = std::any_of(rows.begin(), rows.end(),
                                [&](const KernelRow& r) { return listed(only, r.key); });
  std::erase_if(rows, [&](const KernelRow& r) {
    return listed(exclude, r.key) || (some && !listed(only, r.key));
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<OpCore>> OpCore::make(Runtime& runtime, const OpType& type,
                                                     const ParamValues& params,
                                                     const OpOptions& options) {
  const std::string& op = type.signature.op;
  KILN_ASSIGN_OR_RETURN(ParamValues complete, complete_params(op, type.signature.params, params));
  std::vector<KernelRow> rows = runtime.kernel_rows(op);
  KILN_RETURN_IF_ERROR(internal::check_kernel_types(type, rows));
  KILN_RETURN_IF_ERROR(check_listed(type, rows, options.only, "only"));
  KILN_RETURN_IF_ERROR(check_listed(type, rows, options.exclude, "exclude"));
  KILN_RETURN_IF_ERROR(check_listed(type, rows, options.prefer, "prefer"));

  auto core = std::make_unique<OpCore>(runtime, type, std::move(complete), options);
  for (const InterfaceType& interface : type.interfaces) {
    Candidates candidates{op, interface.type_name, {}, options.prefer};
    candidates.prefer.insert(candidates.prefer.end(), runtime.options().prefer.begin(),
                             runtime.options().prefer.end());
    for (const KernelRow& row : rows) {
      if (row.type.interface_type == interface.type_name) candidates.rows.push_back(row);
    }
    std::sort(candidates.rows.begin(), candidates.rows.end(),
              [](const KernelRow& a, const KernelRow& b) { return a.key < b.key; });
    const bool any = !candidates.rows.empty();
    apply_lists(candidates.rows, options.only, options.exclude);
    apply_lists(candidates.rows, runtime.options().only, runtime.options().exclude);
    candidates.all_excluded = any && candidates.rows.empty();
    KILN_RETURN_IF_ERROR(internal::check_candidates(candidates));
    core->dispatchers_.push_back(
        std::make_unique<Dispatcher>(runtime.impl(), interface, std::move(candidates)));
    core->dispatchers_.back()->set_tuner(
        [core = core.get()](Kernel& kernel) { return core->tuning_.request(kernel); });
  }
  return core;
}

OpCore::OpCore(Runtime& runtime, const OpType& type, ParamValues params, OpOptions options)
    : runtime_(runtime),
      type_(type),
      params_(std::move(params)),
      options_(std::move(options)),
      memory_(internal::kMaxCallWords, internal::kMaxRememberedKernels, kMaxRememberedCalls),
      serving_(runtime.impl(), type.signature.op, options_.target, type.interfaces.empty()),
      tuning_(*this),
      scratch_(runtime) {}

absl::StatusOr<Dispatcher*> OpCore::dispatcher(std::string_view interface) const {
  for (const auto& d : dispatchers_) {
    if (d->interface().name == interface) return d.get();
  }
  return absl::NotFoundError(absl::StrFormat(
      "%s: no kernel interface %s; it has: %s", type_.signature.op, std::string(interface),
      absl::StrJoin(dispatchers_, ", ",
                    [](std::string* out, const auto& d) { out->append(d->interface().name); })));
}

namespace {

std::optional<ArgSpec> arg_of(const Tensor* tensor) {
  if (tensor == nullptr) return std::nullopt;
  return ArgSpec{tensor->spec(), tensor->strides, tensor->alignment()};
}

bool has_elements(const Tensor* tensor) { return tensor != nullptr && tensor->elements() > 0; }

}  // namespace

absl::Status OpCore::check_tensors(const Stream& stream, std::span<const Tensor* const> inputs,
                                   std::span<const Tensor* const> outputs, CallArgs& args) const {
  const Signature& s = signature();
  if (inputs.size() != s.inputs.size() || outputs.size() != s.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: a call has %d inputs and %d outputs (null for an optional one): got %d and %d", s.op,
        s.inputs.size(), s.outputs.size(), inputs.size(), outputs.size()));
  }
  for (const Tensor* t : inputs) args.inputs.push_back(arg_of(t));
  for (const Tensor* t : outputs) args.outputs.push_back(arg_of(t));
  KILN_RETURN_IF_ERROR(check_call(s, params_, args));
  auto check = [&](const TensorParam& param, const Tensor* t) -> absl::Status {
    if (t == nullptr) return absl::OkStatus();
    if (t->data == nullptr && t->elements() > 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s must have memory for its %d elements: got a null pointer", s.op,
                          param.name, t->elements()));
    }
    if (!param.host && t->device != stream.device) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s must be on the stream's device: want %s, got %s", s.op,
                          param.name, to_string(stream.device), to_string(t->device)));
    }
    return absl::OkStatus();
  };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    KILN_RETURN_IF_ERROR(check(s.inputs[i], inputs[i]));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    KILN_RETURN_IF_ERROR(check(s.outputs[i], outputs[i]));
  return absl::OkStatus();
}

absl::Status OpCore::make_contiguous(const Stream& stream, bool declared_only,
                                     std::vector<const Tensor*>& inputs,
                                     std::vector<OwnedTensor>& copies, CallArgs& args) {
  const Signature& s = signature();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorParam& param = s.inputs[i];
    if (inputs[i] == nullptr || inputs[i]->is_contiguous()) continue;
    if (declared_only ? !param.contiguous : param.written) continue;
    if (options_.strict || param.host) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s must be contiguous (%s): got shape %s with strides %s", s.op,
                          param.name, param.host ? "it is on the host" : "the op is strict",
                          to_string(inputs[i]->shape), to_string(inputs[i]->strides)));
    }
    KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime_.device_support(stream.device.type));
    KILN_ASSIGN_OR_RETURN(
        OwnedTensor copy,
        OwnedTensor::allocate(*support, stream, inputs[i]->dtype, inputs[i]->shape));
    absl::Status copied = support->copy_strided(stream, copy.tensor().data, *inputs[i]);
    if (!copied.ok())
      return annotate(copied, absl::StrFormat("%s: %s is not contiguous and was to be copied", s.op,
                                              param.name));
    runtime_.impl().input_copies.fetch_add(1, std::memory_order_relaxed);
    copies.push_back(std::move(copy));
    inputs[i] = &copies.back().tensor();
    args.inputs[i] = arg_of(inputs[i]);
  }
  return absl::OkStatus();
}

absl::Status OpCore::call(Op& op, const Stream& stream, std::span<const Tensor* const> inputs,
                          std::span<const Tensor* const> outputs,
                          const ParamValues& execution_params) {
  const Signature& s = signature();
  KILN_RETURN_IF_ERROR(check_not_forked(runtime_.impl().owner, s.op));
  CallArgs args;
  KILN_RETURN_IF_ERROR(check_tensors(stream, inputs, outputs, args));
  KILN_ASSIGN_OR_RETURN(const ParamValues execution,
                        complete_params(s.op, s.execution_params, execution_params));

  // Nothing is written: nothing runs, and nothing is settled.
  bool writes = false;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    writes |= s.inputs[i].written && has_elements(inputs[i]);
  for (const Tensor* t : outputs) writes |= has_elements(t);
  if (!writes) return absl::OkStatus();

  std::vector<const Tensor*> ready(inputs.begin(), inputs.end());
  std::vector<OwnedTensor> copies;
  copies.reserve(inputs.size());
  const auto copy_inputs = [&](bool declared_only) {
    return make_contiguous(stream, declared_only, ready, copies, args);
  };
  KILN_RETURN_IF_ERROR(copy_inputs(/*declared_only=*/true));

  std::vector<std::uint64_t> key(internal::kMaxCallWords);
  key.resize(copies.empty() ? internal::call_words(stream, inputs, outputs, key.data()) : 0);
  std::vector<std::string> served_by;
  const absl::Status status =
      serving_.with_target(stream.device, [&](const std::string& target) -> absl::Status {
        if (target == kBuiltin) {
          return call_in_tree(op, CallView(stream, ready, outputs, {}, execution), args, key,
                              served_by);
        }
        // A target is told no strides: what it only reads is contiguous, declared or not.
        KILN_RETURN_IF_ERROR(copy_inputs(/*declared_only=*/false));
        std::vector<std::optional<TensorSpec>> specs;
        for (const auto& arg : args.inputs)
          specs.push_back(arg ? std::optional(arg->spec) : std::nullopt);
        KILN_ASSIGN_OR_RETURN(TargetKernel * kernel,
                              serving_.kernel(target, stream.device, specs, params_));
        served_by = {target};
        return internal::guarded(absl::StrFormat("%s: target %s", s.op, target),
                                 [&] { return kernel->run(stream, ready, outputs, execution); });
      });
  // What the call itself is at fault for would fail again. All else is worth warming: also what a
  // deadline, a missing device or `forbid` has stopped.
  if (!absl::IsInvalidArgument(status) && !absl::IsUnimplemented(status))
    record_for_warming(stream, args, execution, key);
  KILN_RETURN_IF_ERROR(status);
  if (options_.record_calls) record({std::move(args), stream.device, std::move(served_by)});
  return absl::OkStatus();
}

std::vector<std::string> OpCore::keys_of(std::span<const void* const> kernels) const {
  std::vector<std::string> keys;
  for (const void* kernel : kernels) {
    for (const auto& dispatcher : dispatchers_) {
      for (const internal::EntryRow* entry : dispatcher->entries()) {
        if (entry->as_interface == kernel) keys.push_back(entry->implementation->key);
      }
    }
  }
  return keys;
}

absl::StatusOr<OpCore::Resolved> OpCore::resolve(const std::vector<KernelCall>& plan,
                                                 const Device& device,
                                                 const internal::MissOptions& options,
                                                 const CallArgs& args,
                                                 const ParamValues& execution) {
  const absl::StatusOr<DeviceSupport*> support = runtime_.device_support(device.type);
  Resolved resolved;
  std::vector<const internal::EntryRow*> entries;
  for (const KernelCall& kernel_call : plan) {
    KILN_ASSIGN_OR_RETURN(Dispatcher * dispatcher, this->dispatcher(kernel_call.interface));
    const AnyCall call = kernel_call.call.at(Where{device});
    KILN_ASSIGN_OR_RETURN(
        const internal::Served served,
        dispatcher->entry_for(support.ok() ? *support : nullptr, call.ref(), options));
    resolved.kernels.push_back(served.entry);
    resolved.stand_ins |= served.stand_in;
    resolved.kept &= served.kept;
    entries.push_back(served.row.get());
    resolved.rows.push_back(served.row);
  }
  if (!resolved.stand_ins && !options.capturing && !plan.empty() && resolved.kept)
    tuning_.before_call(args, execution, device, resolved.kernels, std::move(entries));
  return resolved;
}

absl::Status OpCore::call_in_tree(Op& op, const CallView& view, const CallArgs& args,
                                  const std::vector<std::uint64_t>& key,
                                  std::vector<std::string>& keys) {
  KILN_ASSIGN_OR_RETURN(const std::vector<KernelCall> plan, op.plan_call(args));
  internal::MissOptions options = miss_options();
  const Device device = view.stream().device;
  const absl::StatusOr<DeviceSupport*> support = runtime_.device_support(device.type);
  if (!plan.empty()) {
    if (support.ok()) {
      KILN_ASSIGN_OR_RETURN(options.capturing, (*support)->is_capturing(view.stream()));
    }
  }
  KILN_ASSIGN_OR_RETURN(const Resolved resolved,
                        resolve(plan, device, options, args, view.execution_params()));
  const std::vector<const void*>& kernels = resolved.kernels;
  absl::Status executed = op.execute(view.with_kernels(kernels));
  // What is dropped after the call must not be at work.
  if (!resolved.kept && support.ok()) executed.Update((*support)->synchronize(view.stream()));
  KILN_RETURN_IF_ERROR(executed);
  if (options_.record_calls)
    for (const auto& row : resolved.rows) keys.push_back(row->implementation->key);
  if (!key.empty() && !is_composite() && !resolved.stand_ins && resolved.kept)
    memory_.insert(key.data(), key.size(), kernels.data(), kernels.size());
  return absl::OkStatus();
}

void OpCore::record(CallRecord record) {
  MutexLock lock(mutex_);
  last_call_ = std::move(record);
}

void OpCore::record(const Stream& stream, std::span<const Tensor* const> inputs,
                    std::span<const Tensor* const> outputs, std::span<const void* const> kernels) {
  CallArgs args;
  for (const Tensor* t : inputs) args.inputs.push_back(arg_of(t));
  for (const Tensor* t : outputs) args.outputs.push_back(arg_of(t));
  record({std::move(args), stream.device, keys_of(kernels)});
}

std::optional<CallRecord> OpCore::last_call() const {
  MutexLock lock(mutex_);
  return last_call_;
}

}  // namespace kiln::inline v1
