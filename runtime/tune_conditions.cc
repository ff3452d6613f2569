#include "runtime/tune_conditions.h"

#include "base/log.h"
#include "runtime/guarded.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

namespace kiln::internal {

std::vector<Config> configs_of(const Kernel& kernel, const DeviceFacts& facts) {
  std::vector<Config> configs;
  const absl::Status asked = guarded("autotune_configs", [&] {
    const std::vector<Config> offered = kernel.autotune_configs(facts);
    if (offered.empty()) return absl::OkStatus();
    configs.push_back(kernel.default_config(facts));
    for (const Config& config : offered) {
      if (std::find(configs.begin(), configs.end(), config) == configs.end())
        configs.push_back(config);
    }
    return absl::OkStatus();
  });
  if (!asked.ok()) return {};
  return configs;
}

absl::StatusOr<TuneConditions> tune_conditions(Runtime::Impl& runtime, DeviceSupport& support,
                                               const Kernel& kernel, const DeviceFacts& facts,
                                               const std::vector<Config>& configs) {
  TuneConditions conditions;
  const absl::StatusOr<CompilerId> id = support.compiler().id();
  if (id.ok()) conditions.toolkit = *id;
  conditions.driver = support.driver_version();
  conditions.space = hash_of_space(configs);
  std::vector<Program> programs;
  KILN_RETURN_IF_ERROR(guarded("programs", [&] {
    programs = kernel.programs(facts, configs.front());
    return absl::OkStatus();
  }));
  std::string keys;
  for (const Program& program : programs) {
    KILN_ASSIGN_OR_RETURN(const std::string target,
                          support.target_for(facts, program.arch_specific));
    KILN_ASSIGN_OR_RETURN(const CompileRequest request,
                          runtime.engine.request_for(program, target));
    append_length_prefixed(keys, to_hex(runtime.engine.describe(request, {}).key.source));
  }
  conditions.source = to_hex(hash128(keys));
  return conditions;
}

namespace {

// The record in `text`, if it holds here; an error says why not.
absl::StatusOr<TuneRecord> usable_record(Runtime::Impl& runtime, DeviceSupport& support,
                                         const Kernel& kernel, const TuneKey& key,
                                         const std::string& text) {
  KILN_ASSIGN_OR_RETURN(TuneRecord record, parse_record(text));
  const std::vector<Config> configs = configs_of(kernel, key.facts);
  if (std::find(configs.begin(), configs.end(), record.report.winner) == configs.end()) {
    return absl::FailedPreconditionError("its winner " + to_string(record.report.winner) +
                                         " no longer exists");
  }
  KILN_ASSIGN_OR_RETURN(const TuneConditions now,
                        tune_conditions(runtime, support, kernel, key.facts, configs));
  if (const std::string reason = stale_reason(record, key, now); !reason.empty())
    return absl::FailedPreconditionError(reason);
  return record;
}

}  // namespace

std::optional<TuneRecord> find_record(Runtime::Impl& runtime, DeviceSupport& support,
                                      const Kernel& kernel, const TuneKey& key) {
  if (!runtime.options.use_tuned) return std::nullopt;
  const std::string name = record_name(key);
  std::optional<TuneRecord> record;
  absl::Status not_used;  // why the first that was found is not
  const auto take = [&](const std::string& text) {
    absl::StatusOr<TuneRecord> one = usable_record(runtime, support, kernel, key, text);
    not_used.Update(one.status());
    if (one.ok()) record = *std::move(one);
    return record.has_value();
  };
  // Another machine is asked only for what could be there.
  const bool ask_remote = runtime.records.has_remote() && !configs_of(kernel, key.facts).empty();
  not_used.Update(runtime.records.find(name, take, ask_remote).status());
  if (!record && !not_used.ok()) {
    const std::string reason = message_of(not_used);
    log_once(LogLevel::warning, "tuning/" + name + "/" + reason,
             absl::StrFormat("%s: %s: the tuning record %s is not used: %s", key.op,
                             key.implementation, name, reason));
  }
  return record;
}

absl::StatusOr<Config> default_config(const Kernel& kernel, const DeviceFacts& facts) {
  Config config;
  KILN_RETURN_IF_ERROR(guarded("default_config", [&] {
    config = kernel.default_config(facts);
    return absl::OkStatus();
  }));
  return config;
}

absl::StatusOr<Config> config_in_force(Runtime::Impl& runtime, DeviceSupport& support,
                                       const Kernel& kernel, const TuneKey& key) {
  if (const auto record = find_record(runtime, support, kernel, key)) return record->report.winner;
  return default_config(kernel, key.facts);
}

}  // namespace kiln::internal
