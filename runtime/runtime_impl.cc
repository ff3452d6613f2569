#include "runtime/runtime_impl.h"

#include "runtime/guarded.h"
#include "runtime/messages.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>

namespace kiln::inline v1 {

absl::StatusOr<DeviceFacts> Runtime::Impl::facts(DeviceSupport& support, const Device& device) {
  const std::pair<int, int> key(device.type.id(), device.index);
  {
    MutexLock lock(mutex);
    const auto at = known_facts.find(key);
    if (at != known_facts.end()) return at->second;
  }
  fact_reads.fetch_add(1, std::memory_order_relaxed);
  KILN_ASSIGN_OR_RETURN(DeviceFacts facts, support.facts(device.index));
  MutexLock lock(mutex);
  return known_facts.emplace(key, std::move(facts)).first->second;
}

absl::Status Runtime::Impl::load_kernel(Kernel& kernel, DeviceSupport& support,
                                        const Device& device, const DeviceFacts& facts,
                                        const Config& config, CompilePolicy policy,
                                        const std::string& who) {
  auto loaded = std::make_unique<Loaded>();
  loaded->config = config;
  loaded->facts = facts;
  loaded->support = &support;
  jit::BuildOptions build_options;
  build_options.policy = policy == CompilePolicy::forbid ? jit::Policy::forbid : jit::Policy::block;
  build_options.any_compiler = options.any_compiler;
  std::vector<Program> programs;
  KILN_RETURN_IF_ERROR(internal::guarded(who + ": programs", [&] {
    programs = kernel.programs(facts, loaded->config);
    return absl::OkStatus();
  }));
  for (const Program& program : programs) {
    KILN_ASSIGN_OR_RETURN(const std::string target,
                          support.target_for(facts, program.arch_specific));
    absl::StatusOr<jit::Built> built;
    {
      const TraceSpan span(trace.get(), "build", who);
      built = engine.build(support.compiler(), program, target, build_options);
    }
    if (!built.ok()) return annotate(built.status(), who);
    const TraceSpan span(trace.get(), "load", who);
    absl::StatusOr<std::shared_ptr<LoadedImage>> image =
        modules.load(support, device, *built->artifact, program.kernels);
    if (!image.ok()) return annotate(image.status(), who);
    for (void* function : (*image)->functions()) {
      KILN_RETURN_IF_ERROR(annotate(
          support.prepare(device.index, function, static_cast<std::uint32_t>(program.smem_bytes)),
          who));
      loaded->functions.push_back(function);
    }
    loaded->images.push_back(*std::move(image));
  }
  kernel.publish(device.index, std::move(loaded));
  return absl::OkStatus();
}

bool Runtime::Impl::is_loaded(Kernel& kernel, DeviceSupport& support, const Device& device,
                              const DeviceFacts& facts, const Config& config) {
  std::vector<Program> programs;
  const absl::Status stated = internal::guarded("programs", [&] {
    programs = kernel.programs(facts, config);
    return absl::OkStatus();
  });
  const absl::StatusOr<CompilerId> id = support.compiler().id();
  if (!stated.ok() || programs.empty() || !id.ok()) return false;
  return std::all_of(programs.begin(), programs.end(), [&](const Program& program) {
    const absl::StatusOr<std::string> target = support.target_for(facts, program.arch_specific);
    if (!target.ok()) return false;
    const absl::StatusOr<CompileRequest> request = engine.request_for(program, *target);
    return request.ok() && modules.has(device, engine.describe(*request, *id).key);
  });
}

absl::StatusOr<std::string> Runtime::Impl::detect_target(const Device& device) {
  std::vector<const DetectorRow*> rows;
  {
    MutexLock lock(mutex);
    for (const auto& row : detectors) rows.push_back(row.get());
  }
  std::vector<std::string> claims;
  for (const DetectorRow* row : rows) {
    KILN_RETURN_IF_ERROR(internal::guarded("detector of target " + row->target, [&] {
      if (row->detect(device)) claims.push_back(row->target);
      return absl::OkStatus();
    }));
  }
  if (claims.size() > 1) {
    return with_kind(
        absl::FailedPreconditionError(absl::StrFormat("%s %s: %s; choose one with target= or "
                                                      "set_default_target",
                                                      internal::kAmbiguousTarget, to_string(device),
                                                      absl::StrJoin(claims, ", "))),
        ErrorKind::ambiguous_target);
  }
  return claims.empty() ? "" : claims.front();
}

const BuildTargetKernel* Runtime::Impl::builder(const std::string& op, const std::string& target) {
  MutexLock lock(mutex);
  for (const auto& row : builders) {
    if (row->op == op && row->target == target) return &row->build;
  }
  return nullptr;
}

bool Runtime::Impl::knows_target(const std::string& target) {
  MutexLock lock(mutex);
  for (const auto& row : detectors) {
    if (row->target == target) return true;
  }
  for (const auto& row : builders) {
    if (row->target == target) return true;
  }
  return false;
}

std::string Runtime::Impl::known_targets() {
  MutexLock lock(mutex);
  std::vector<std::string> names;
  for (const auto& row : detectors) names.push_back(row->target);
  for (const auto& row : builders) names.push_back(row->target);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

}  // namespace kiln::inline v1
