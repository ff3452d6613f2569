#include "runtime/tools.h"

#include "runtime/guarded.h"
#include "runtime/runtime_impl.h"
#include "runtime/tune_conditions.h"

#include <absl/strings/str_format.h>

namespace kiln::tools {
namespace {

// The kernel that serves one call of a plan, made but neither compiled nor loaded.
struct Made {
  EntryPlan plan;
  std::unique_ptr<Kernel> kernel;
};

absl::StatusOr<Made> make_kernel(Op& op, const KernelCall& call, const std::string& key) {
  Made made;
  KILN_ASSIGN_OR_RETURN(made.plan, op.entry_plan(call.interface, key, call.call.ref()));
  KILN_RETURN_IF_ERROR(internal::guarded(key + ": the build function", [&] {
    made.kernel = made.plan.build();
    return absl::OkStatus();
  }));
  if (made.kernel == nullptr) return absl::InternalError(key + ": the build function made nothing");
  return made;
}

// The configuration that each kernel of an entry would get: a stored winner's, or the default.
absl::StatusOr<std::vector<Config>> configs_of(Op& op, const Made& made, const std::string& key,
                                               DeviceSupport& support, const DeviceFacts& facts) {
  std::vector<Config> configs;
  for (const Kernel* kernel : made.kernel->kernels()) {
    KILN_ASSIGN_OR_RETURN(Config config,
                          internal::config_in_force(
                              op.runtime().impl(), support, *kernel,
                              {op.signature().op, key, configs.size(), made.plan.identity.hash(),
                               std::string(support.type().name()), facts}));
    configs.push_back(std::move(config));
  }
  return configs;
}

absl::StatusOr<std::vector<Program>> programs_of(const Made& made,
                                                 const std::vector<Config>& configs,
                                                 const DeviceFacts& facts) {
  std::vector<Program> programs;
  KILN_RETURN_IF_ERROR(internal::guarded("programs", [&] {
    const std::vector<Kernel*> kernels = made.kernel->kernels();
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      for (Program& program : kernels[i]->programs(facts, configs[i]))
        programs.push_back(std::move(program));
    }
    return absl::OkStatus();
  }));
  return programs;
}

// How artifacts are looked for: not at all, with the compiler's id, or as where nothing may
// compile.
enum class LookUp { none, exact, by_source_too };

absl::StatusOr<PlannedProgram> plan_program(Runtime& runtime, DeviceSupport& support,
                                            const DeviceFacts& facts, Program program,
                                            LookUp look_up) {
  PlannedProgram planned;
  KILN_ASSIGN_OR_RETURN(planned.target, support.target_for(facts, program.arch_specific));
  KILN_ASSIGN_OR_RETURN(const CompileRequest request,
                        runtime.impl().engine.request_for(program, planned.target));
  const absl::StatusOr<CompilerId> id = support.compiler().id();
  if (!id.ok() && look_up != LookUp::by_source_too) return id.status();
  planned.wanted = runtime.impl().engine.describe(request, id.ok() ? *id : CompilerId());
  if (support.compiler().makes_host_code()) planned.wanted.kind = cache::kHostObject;
  planned.key = planned.wanted.key;
  if (!id.ok()) planned.key.compiler = {};
  std::optional<cache::Found> found;
  if (id.ok()) {
    KILN_ASSIGN_OR_RETURN(found, runtime.impl().store->find(planned.wanted));
  }
  if (!found && look_up == LookUp::by_source_too) {
    KILN_ASSIGN_OR_RETURN(found, runtime.impl().store->find_by_source(planned.wanted));
  }
  if (found) planned.tier = found->tier;
  planned.program = std::move(program);
  return planned;
}

absl::StatusOr<std::vector<KernelCall>> plan_on(Op& op, const CallArgs& args, DeviceType type) {
  KILN_ASSIGN_OR_RETURN(std::vector<KernelCall> plan, op.plan(args));
  for (KernelCall& call : plan) call.call = call.call.at(Where{Device{type, 0}});
  return plan;
}

absl::StatusOr<std::vector<PlannedKernel>> planned_kernels(Op& op, const CallArgs& args,
                                                           DeviceType type,
                                                           const DeviceFacts& facts,
                                                           LookUp look_up) {
  KILN_ASSIGN_OR_RETURN(const std::vector<KernelCall> plan, plan_on(op, args, type));
  std::vector<PlannedKernel> out;
  for (const KernelCall& call : plan) {
    PlannedKernel planned;
    planned.interface = call.interface;
    planned.call = to_string(call.call.ref());
    KILN_ASSIGN_OR_RETURN(planned.selection, op.select(call.interface, call.call.ref(), facts));
    if (planned.selection.chosen) {
      KILN_ASSIGN_OR_RETURN(const Made made, make_kernel(op, call, *planned.selection.chosen));
      planned.identity = made.plan.identity;
      if (look_up == LookUp::none) {  // nor are records, which may be far away
        KILN_ASSIGN_OR_RETURN(planned.config, internal::default_config(*made.kernel, facts));
      } else {
        KILN_ASSIGN_OR_RETURN(DeviceSupport * support, op.runtime().device_support(type));
        KILN_ASSIGN_OR_RETURN(const std::vector<Config> configs,
                              configs_of(op, made, *planned.selection.chosen, *support, facts));
        if (!configs.empty()) planned.config = configs.front();
        KILN_ASSIGN_OR_RETURN(std::vector<Program> programs, programs_of(made, configs, facts));
        for (Program& program : programs) {
          KILN_ASSIGN_OR_RETURN(PlannedProgram one, plan_program(op.runtime(), *support, facts,
                                                                 std::move(program), look_up));
          planned.programs.push_back(std::move(one));
        }
      }
    }
    out.push_back(std::move(planned));
  }
  return out;
}

}  // namespace

absl::Status complete_outputs(const Op& op, CallArgs& args) {
  KILN_ASSIGN_OR_RETURN(const std::vector<TensorSpec> outputs,
                        infer_outputs(op.signature(), op.params(), args.inputs));
  args.outputs.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!args.outputs[i]) args.outputs[i] = contiguous_arg(outputs[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PlannedKernel>> explain_call(Op& op, const CallArgs& args,
                                                        DeviceType type, const DeviceFacts& facts,
                                                        bool look_up) {
  return planned_kernels(op, args, type, facts, look_up ? LookUp::exact : LookUp::none);
}

absl::StatusOr<std::vector<PlannedKernel>> look_up_call(Op& op, const CallArgs& args,
                                                        DeviceType type, const DeviceFacts& facts) {
  return planned_kernels(op, args, type, facts, LookUp::by_source_too);
}

absl::StatusOr<std::vector<WarmedKernel>> warm_call(Op& op, const CallArgs& args, DeviceType type,
                                                    const DeviceFacts& facts) {
  KILN_ASSIGN_OR_RETURN(const std::vector<KernelCall> plan, plan_on(op, args, type));
  KILN_ASSIGN_OR_RETURN(DeviceSupport * support, op.runtime().device_support(type));
  std::vector<WarmedKernel> out;
  for (const KernelCall& call : plan) {
    KILN_ASSIGN_OR_RETURN(const Selection selection,
                          op.select(call.interface, call.call.ref(), facts));
    KILN_RETURN_IF_ERROR(selection.error);
    KILN_ASSIGN_OR_RETURN(const Made made, make_kernel(op, call, *selection.chosen));
    WarmedKernel warmed{call.interface, *selection.chosen, made.plan.identity.hash(), {}};
    KILN_ASSIGN_OR_RETURN(const std::vector<Config> configs,
                          configs_of(op, made, *selection.chosen, *support, facts));
    KILN_ASSIGN_OR_RETURN(const std::vector<Program> programs, programs_of(made, configs, facts));
    for (const Program& program : programs) {
      KILN_ASSIGN_OR_RETURN(const std::string target,
                            support->target_for(facts, program.arch_specific));
      absl::StatusOr<jit::Built> built =
          op.runtime().impl().engine.build(support->compiler(), program, target);
      if (!built.ok()) {
        return annotate(built.status(),
                        absl::StrFormat("%s: %s %s", op.signature().op, *selection.chosen,
                                        made.plan.identity.text()));
      }
      warmed.programs.push_back(
          {built->artifact->key, program.source, built->found_in, built->seconds});
    }
    out.push_back(std::move(warmed));
  }
  return out;
}

absl::Status load_config(Runtime& runtime, Kernel& kernel, const Device& device,
                         const Config& config) {
  KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime.device_support(device.type));
  KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, runtime.impl().facts(*support, device));
  return runtime.impl().load_kernel(kernel, *support, device, facts, config, CompilePolicy::block,
                                    to_string(config));
}

cache::Store& store(Runtime& runtime) { return *runtime.impl().store; }

}  // namespace kiln::tools
