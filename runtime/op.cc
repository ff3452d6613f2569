#include <kiln/op.h>

#include "runtime/op_core.h"
#include "runtime/runtime_impl.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <exception>

namespace kiln::inline v1 {

OpInit::OpInit(std::unique_ptr<OpCore> core) : core_(std::move(core)) {}
OpInit::OpInit(OpInit&&) noexcept = default;
OpInit& OpInit::operator=(OpInit&&) noexcept = default;
OpInit::~OpInit() = default;

absl::StatusOr<OpInit> prepare_op(std::string_view op, const ParamValues& params,
                                  const OpOptions& options) {
  Runtime& runtime = options.runtime != nullptr ? *options.runtime : Runtime::instance();
  runtime.load_backends();
  KILN_ASSIGN_OR_RETURN(const OpType* type, runtime.op_type(op));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<OpCore> core,
                        OpCore::make(runtime, *type, params, options));
  return OpInit(std::move(core));
}

Op::Op(OpInit init) : core_(std::move(init.core_)) { core_->adopt(*this); }
Op::~Op() = default;

const Signature& Op::signature() const { return core_->signature(); }
const ParamValues& Op::params() const { return core_->params(); }
Runtime& Op::runtime() const { return core_->runtime(); }

absl::StatusOr<std::vector<KernelCall>> Op::plan(const CallArgs& args) const {
  KILN_RETURN_IF_ERROR(check_call(signature(), params(), args));
  return plan_call(args);
}

absl::StatusOr<std::string> Op::key_for(std::string_view interface, CallRef call) const {
  KILN_ASSIGN_OR_RETURN(internal::Dispatcher * dispatcher, core_->dispatcher(interface));
  KILN_RETURN_IF_ERROR(dispatcher->check_call_spec(call, /*stated_ok=*/true));
  const Where& where = call.where();
  KILN_RETURN_IF_ERROR(dispatcher->check_device_type(where.device.type));
  DeviceFacts facts;
  if (where.arch != 0) {
    facts = {where.arch, where.sm_count, where.smem_budget, ""};
  } else {
    KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime().device_support(where.device.type));
    KILN_ASSIGN_OR_RETURN(facts, runtime().impl().facts(*support, where.device));
    if (where.sm_count != 0) facts.sm_count = where.sm_count;
    if (where.smem_budget != 0) facts.smem_budget = where.smem_budget;
  }
  Selection selection = dispatcher->select(call, where.device.type, facts);
  KILN_RETURN_IF_ERROR(selection.error);
  return *std::move(selection.chosen);
}

absl::StatusOr<Selection> Op::select(std::string_view interface, CallRef call,
                                     const DeviceFacts& facts) const {
  KILN_ASSIGN_OR_RETURN(internal::Dispatcher * dispatcher, core_->dispatcher(interface));
  KILN_RETURN_IF_ERROR(dispatcher->check_call_spec(call, /*stated_ok=*/true));
  return dispatcher->select(call, call.where().device.type, facts);
}

absl::StatusOr<EntryPlan> Op::entry_plan(std::string_view interface, std::string_view key,
                                         CallRef call) const {
  KILN_ASSIGN_OR_RETURN(internal::Dispatcher * dispatcher, core_->dispatcher(interface));
  KILN_RETURN_IF_ERROR(dispatcher->check_call_spec(call, /*stated_ok=*/true));
  return dispatcher->plan_entry(std::string(key), call);
}

absl::StatusOr<const void*> Op::kernel_for(std::string_view interface, CallRef call) {
  KILN_ASSIGN_OR_RETURN(internal::Dispatcher * dispatcher, core_->dispatcher(interface));
  KILN_RETURN_IF_ERROR(dispatcher->check_call_spec(call, /*stated_ok=*/false));
  absl::StatusOr<DeviceSupport*> support = runtime().device_support(call.where().device.type);
  internal::MissOptions options = core_->miss_options();
  options.keep = true;
  KILN_ASSIGN_OR_RETURN(const internal::Served served,
                        dispatcher->entry_for(support.ok() ? *support : nullptr, call, options));
  return served.entry;
}

std::shared_future<absl::Status> Op::prefetch(const CallArgs& args, const Device& device) {
  return core_->prefetch(plan(args), device);
}

const void* Op::find_entry(int interface, const std::uint64_t* words, std::size_t count) const {
  return core_->dispatcher_at(static_cast<std::size_t>(interface)).find(words, count);
}

absl::Status Op::call(const Stream& stream, std::span<const Tensor* const> inputs,
                      std::span<const Tensor* const> outputs,
                      const ParamValues& execution_params) try {
  // What is remembered has passed the checks that depend on the words alone; execution parameters
  // do not.
  std::uint64_t words[internal::kMaxCallWords];
  const void* kernels[internal::kMaxRememberedKernels];
  const bool plain = execution_params.empty() && signature().execution_params.empty();
  const std::size_t count = plain ? internal::call_words(stream, inputs, outputs, words) : 0;
  if (count > 0) {
    const int found = core_->memory().find(words, count, kernels);
    if (found >= 0) {
      const std::span<const void* const> served(kernels, static_cast<std::size_t>(found));
      const absl::Status status =
          execute(CallView(stream, inputs, outputs, served, execution_params));
      if (!core_->options().record_calls || !status.ok()) return status;
      core_->record(stream, inputs, outputs, served);
      return status;
    }
  }
  return core_->call(*this, stream, inputs, outputs, execution_params);
} catch (const std::exception& e) {
  // Kernels of a plugin run here. Entering the block costs nothing.
  return absl::InternalError(absl::StrFormat("%s: a kernel threw: %s", signature().op, e.what()));
} catch (...) {
  return absl::InternalError(absl::StrFormat("%s: a kernel threw", signature().op));
}

absl::StatusOr<std::vector<OwnedTensor>> Op::call_allocating(const Stream& stream,
                                                             std::span<const Tensor* const> inputs,
                                                             const ParamValues& execution_params) {
  std::vector<std::optional<ArgSpec>> specs;
  for (const Tensor* t : inputs) {
    specs.push_back(t == nullptr ? std::nullopt
                                 : std::optional(ArgSpec{t->spec(), t->strides, t->alignment()}));
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<TensorSpec> wanted,
                        infer_outputs(signature(), params(), specs));
  KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime().device_support(stream.device.type));
  std::vector<OwnedTensor> outputs;
  std::vector<const Tensor*> views;
  for (const TensorSpec& spec : wanted) {
    KILN_ASSIGN_OR_RETURN(OwnedTensor output,
                          OwnedTensor::allocate(*support, stream, spec.dtype, spec.shape));
    outputs.push_back(std::move(output));
  }
  for (const OwnedTensor& output : outputs) views.push_back(&output.tensor());
  KILN_RETURN_IF_ERROR(call(stream, inputs, views, execution_params));
  return outputs;
}

void Op::request_tune() { request_tune(TuneOptions()); }

void Op::request_tune(const TuneOptions& options) {
  core_->serving().request_tune();
  core_->tuning().request(options);
  for (Op* sub : sub_ops()) sub->request_tune(options);
}

absl::Status Op::tune(const CallArgs& args, const Device& device, const TuneOptions& options,
                      const ParamValues& execution_params) {
  KILN_ASSIGN_OR_RETURN(const std::vector<KernelCall> calls, plan(args));
  KILN_ASSIGN_OR_RETURN(
      const ParamValues execution,
      complete_params(signature().op, signature().execution_params, execution_params));
  request_tune(options);
  internal::MissOptions miss = core_->miss_options();
  if (miss.policy == CompilePolicy::async) miss.policy = CompilePolicy::block;
  miss.keep = true;
  return core_->resolve(calls, device, miss, args, execution).status();
}

bool Op::tuning_requested() const { return core_->tuning().requested(); }

std::vector<TuneReport> Op::tune_reports() const {
  std::vector<TuneReport> reports = core_->tuning().reports();
  for (const Op* sub : sub_ops()) {
    for (TuneReport& report : sub->tune_reports()) reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<BuiltEntry> Op::built_entries(std::string_view interface) const {
  if (const auto target = serving_target(); target && *target != kBuiltin)
    return core_->serving().built();
  std::vector<BuiltEntry> out;
  const absl::StatusOr<internal::Dispatcher*> dispatcher = core_->dispatcher(interface);
  if (!dispatcher.ok()) return out;
  for (const internal::EntryRow* entry : (*dispatcher)->entries()) {
    out.push_back(
        {entry->implementation->key, entry->identity, entry->facts, entry->kernel->config()});
  }
  return out;
}

std::vector<Kernel*> Op::iter_kernels() const {
  std::vector<Kernel*> out;
  const auto add = [&out](Kernel* kernel) {
    if (std::find(out.begin(), out.end(), kernel) == out.end()) out.push_back(kernel);
  };
  for (const auto& dispatcher : core_->dispatchers()) {
    for (const internal::EntryRow* entry : dispatcher->entries()) {
      for (Kernel* kernel : entry->kernel->kernels()) add(kernel);
    }
  }
  for (const Op* sub : sub_ops()) {
    for (Kernel* kernel : sub->iter_kernels()) add(kernel);
  }
  return out;
}

Config Op::kernel_config() const {
  for (const Kernel* kernel : iter_kernels()) {
    if (Config config = kernel->config(); !config.empty()) return config;
  }
  for (const BuiltEntry& entry : core_->serving().built()) {
    if (!entry.config.empty()) return entry.config;
  }
  for (const Op* sub : sub_ops()) {
    if (Config config = sub->kernel_config(); !config.empty()) return config;
  }
  return {};
}

std::optional<CallRecord> Op::last_call() const { return core_->last_call(); }

std::optional<Roofline> Op::roofline() const {
  const std::optional<CallRecord> last = last_call();
  if (!last) return std::nullopt;
  return roofline_of(last->args);
}

Roofline Op::roofline_of(const CallArgs& args) const {
  Roofline roofline;
  for (const auto* list : {&args.inputs, &args.outputs}) {
    for (const std::optional<ArgSpec>& arg : *list) {
      if (arg)
        roofline.bytes += static_cast<double>(numel(arg->spec.shape)) * size_of(arg->spec.dtype);
    }
  }
  return roofline;
}

std::optional<std::string> Op::serving_target() const { return core_->serving().settled(); }

absl::StatusOr<void*> Op::workspace(const Stream& stream, std::size_t bytes) {
  return core_->workspace(stream, bytes);
}

}  // namespace kiln::inline v1
