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

std::optional<TuneRecord> find_record(Runtime::Impl& runtime, DeviceSupport& support,
                                      const Kernel& kernel, const TuneKey& key) {
  if (!runtime.options.use_tuned) return std::nullopt;
  const std::string name = record_name(key);
  const auto ignore = [&](const std::string& reason) {
    log_once(LogLevel::warning, "tuning/" + name + "/" + reason,
             absl::StrFormat("%s: %s: the tuning record %s is not used: %s", key.op,
                             key.implementation, name, reason));
    return std::nullopt;
  };
  const absl::StatusOr<std::optional<std::string>> text = runtime.records.find(name);
  if (!text.ok()) return ignore(message_of(text.status()));
  if (!*text) return std::nullopt;
  absl::StatusOr<TuneRecord> record = parse_record(**text);
  if (!record.ok()) return ignore(message_of(record.status()));
  const std::vector<Config> configs = configs_of(kernel, key.facts);
  if (std::find(configs.begin(), configs.end(), record->report.winner) == configs.end())
    return ignore("its winner " + to_string(record->report.winner) + " no longer exists");
  const absl::StatusOr<TuneConditions> now =
      tune_conditions(runtime, support, kernel, key.facts, configs);
  if (!now.ok()) return ignore(message_of(now.status()));
  if (const std::string reason = stale_reason(*record, key, *now); !reason.empty())
    return ignore(reason);
  return *std::move(record);
}

Config config_in_force(Runtime::Impl& runtime, DeviceSupport& support, const Kernel& kernel,
                       const TuneKey& key) {
  if (const auto record = find_record(runtime, support, kernel, key)) return record->report.winner;
  return kernel.default_config(key.facts);
}

}  // namespace kiln::internal
