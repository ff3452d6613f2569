#include "runtime/tune_json.h"

#include "runtime/call_json.h"
#include "runtime/json_text.h"
#include "runtime/tune_record.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace kiln::internal {
namespace {

constexpr int kRecordVersion = 1;

Json candidate_json(const TuneCandidate& candidate) {
  Json json;
  json["config"] = json_of(candidate.config);
  json["state"] = to_string(candidate.state);
  if (!candidate.reason.empty()) json["reason"] = candidate.reason;
  if (candidate.seconds > 0) json["seconds"] = candidate.seconds;
  if (candidate.samples > 0) {
    json["spread_seconds"] = candidate.spread_seconds;
    json["samples"] = candidate.samples;
  }
  if (candidate.registers >= 0) json["registers"] = candidate.registers;
  if (candidate.spill_bytes >= 0) json["spill_bytes"] = candidate.spill_bytes;
  if (candidate.smem_bytes >= 0) json["smem_bytes"] = candidate.smem_bytes;
  if (candidate.occupancy >= 0) json["occupancy"] = candidate.occupancy;
  return json;
}

// What a record and a printed report have in common.
void add_findings(const TuneReport& report, Json& json) {
  json["problem"] = report.problem;
  json["method"] = report.method;
  json["seed"] = report.seed;
  json["complete"] = report.complete;
  json["default"] = json_of(report.default_config);
  json["winner"] = json_of(report.winner);
  json["default_seconds"] = report.default_seconds;
  json["winner_seconds"] = report.winner_seconds;
  json["gain_seconds"] = report.gain_seconds;
  json["noise_seconds"] = report.noise_seconds;
  json["decision"] = report.decision;
  json["sweep_seconds"] = report.sweep_seconds;
  json["candidates"] = Json::array();
  for (const TuneCandidate& candidate : report.candidates)
    json["candidates"].push_back(candidate_json(candidate));
}

Config config_of(const Json& json) {
  Config config;
  for (const auto& [name, value] : json.items()) config.set(name, value.get<std::int64_t>());
  return config;
}

SearchPolicy policy_of(const std::string& text) {
  for (const SearchPolicy policy : {SearchPolicy::exhaustive, SearchPolicy::halving}) {
    if (text == to_string(policy)) return policy;
  }
  return SearchPolicy::automatic;
}

CandidateState state_of(const std::string& text) {
  for (const CandidateState state :
       {CandidateState::waiting, CandidateState::measured, CandidateState::stopped,
        CandidateState::pruned, CandidateState::failed, CandidateState::wrong}) {
    if (text == to_string(state)) return state;
  }
  return CandidateState::excluded;
}

TuneCandidate candidate_of(const Json& json) {
  TuneCandidate candidate;
  candidate.config = config_of(json.at("config"));
  candidate.state = state_of(json.at("state").get<std::string>());
  candidate.reason = json.value("reason", "");
  candidate.seconds = json.value("seconds", 0.0);
  candidate.spread_seconds = json.value("spread_seconds", 0.0);
  candidate.samples = json.value("samples", 0);
  candidate.registers = json.value("registers", std::int64_t{-1});
  candidate.spill_bytes = json.value("spill_bytes", std::int64_t{-1});
  candidate.smem_bytes = json.value("smem_bytes", std::int64_t{-1});
  candidate.occupancy = json.value("occupancy", -1.0);
  return candidate;
}

TuneRecord record_of(const Json& json) {
  TuneRecord record;
  record.key.op = json.at("op").get<std::string>();
  record.key.implementation = json.at("implementation").get<std::string>();
  record.key.kernel = json.at("kernel").get<std::size_t>();
  record.key.identity = json.at("identity").get<std::string>();
  record.key.device_type = json.at("device_type").get<std::string>();
  const Json& board = json.at("board");
  record.key.facts = {board.at("arch").get<int>(), board.at("sm_count").get<int>(),
                      board.at("smem_budget").get<std::int64_t>(),
                      board.at("calibration").get<std::string>()};
  record.conditions.source = json.at("source").get<std::string>();
  const Json& toolkit = json.at("toolkit");
  record.conditions.toolkit = {toolkit.at("name").get<std::string>(),
                               toolkit.at("build").get<std::string>(),
                               toolkit.at("headers").get<std::string>()};
  record.conditions.driver = json.at("driver").get<std::string>();
  record.conditions.space = json.at("space").get<std::string>();
  TuneReport& report = record.report;
  report.op = record.key.op;
  report.implementation = record.key.implementation;
  report.kernel = record.key.kernel;
  report.identity = record.key.identity;
  report.identity_text = json.at("identity_text").get<std::string>();
  report.problem = json.at("problem").get<std::string>();
  report.method = json.at("method").get<std::string>();
  report.seed = json.at("seed").get<std::uint64_t>();
  report.complete = json.at("complete").get<bool>();
  report.default_config = config_of(json.at("default"));
  report.winner = config_of(json.at("winner"));
  report.default_seconds = json.at("default_seconds").get<double>();
  report.winner_seconds = json.at("winner_seconds").get<double>();
  report.gain_seconds = json.at("gain_seconds").get<double>();
  report.noise_seconds = json.at("noise_seconds").get<double>();
  report.decision = json.at("decision").get<std::string>();
  report.sweep_seconds = json.at("sweep_seconds").get<double>();
  for (const Json& candidate : json.at("candidates"))
    report.candidates.push_back(candidate_of(candidate));
  return record;
}

}  // namespace

Json json_of(const Config& config) {
  Json json = Json::object();
  for (const auto& [name, value] : config.values()) json[name] = value;
  return json;
}

Json json_of(const TuneReport& report) {
  Json json;
  json["op"] = report.op;
  json["implementation"] = report.implementation;
  json["kernel"] = report.kernel;
  json["identity"] = report.identity;
  json["identity_text"] = report.identity_text;
  json["device"] = to_string(report.device);
  json["from_record"] = report.from_record;
  json["error"] = report.status.ok() ? Json() : Json(message_of(report.status));
  add_findings(report, json);
  return json;
}

Json json_of(const TuneOptions& options) {
  Json json;
  json["policy"] = to_string(options.policy);
  json["exhaustive_limit"] = options.exhaustive_limit;
  json["sample_size"] = options.sample_size;
  json["seed"] = options.seed;
  json["budget_seconds"] = options.budget_seconds;
  json["compile_seconds"] = options.compile_seconds;
  json["sample_seconds"] = options.sample_seconds;
  json["rounds"] = options.rounds;
  json["deciding_rounds"] = options.deciding_rounds;
  json["least_gain"] = options.least_gain;
  json["force"] = options.force;
  json["store"] = options.store;
  json["exclude"] = Json::array();
  for (const TuneExclusion& one : options.exclude) {
    json["exclude"].push_back(
        {{"implementation", one.implementation}, {"config", one.config}, {"reason", one.reason}});
  }
  return json;
}

TuneOptions tune_options_of(const Json& json) {
  TuneOptions options;
  options.policy = policy_of(json.at("policy").get<std::string>());
  json.at("exhaustive_limit").get_to(options.exhaustive_limit);
  json.at("sample_size").get_to(options.sample_size);
  json.at("seed").get_to(options.seed);
  json.at("budget_seconds").get_to(options.budget_seconds);
  json.at("compile_seconds").get_to(options.compile_seconds);
  json.at("sample_seconds").get_to(options.sample_seconds);
  json.at("rounds").get_to(options.rounds);
  json.at("deciding_rounds").get_to(options.deciding_rounds);
  json.at("least_gain").get_to(options.least_gain);
  json.at("force").get_to(options.force);
  json.at("store").get_to(options.store);
  for (const Json& one : json.at("exclude")) {
    options.exclude.push_back({one.at("implementation").get<std::string>(),
                               one.at("config").get<std::string>(),
                               one.at("reason").get<std::string>()});
  }
  return options;
}

std::string record_to_json(const TuneRecord& record) {
  Json json;
  json["kiln_tuning"] = kRecordVersion;
  json["op"] = record.key.op;
  json["implementation"] = record.key.implementation;
  json["kernel"] = record.key.kernel;
  json["identity"] = record.key.identity;
  json["identity_text"] = record.report.identity_text;
  json["device_type"] = record.key.device_type;
  json["board"] = {{"arch", record.key.facts.arch},
                   {"sm_count", record.key.facts.sm_count},
                   {"smem_budget", record.key.facts.smem_budget},
                   {"calibration", record.key.facts.calibration}};
  json["source"] = record.conditions.source;
  json["toolkit"] = {{"name", record.conditions.toolkit.name},
                     {"build", record.conditions.toolkit.build},
                     {"headers", record.conditions.toolkit.headers}};
  json["driver"] = record.conditions.driver;
  json["space"] = record.conditions.space;
  add_findings(record.report, json);
  return dump(json, 1) + "\n";
}

std::string problem_text(const Signature& signature, const CallArgs& args) {
  std::string text;
  const auto add = [&text](const std::vector<TensorParam>& params,
                           const std::vector<std::optional<ArgSpec>>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i]) continue;
      text += (text.empty() ? "" : ", ") + params[i].name + " " +
              std::string(to_string(list[i]->spec.dtype)) + to_string(list[i]->spec.shape);
      if (!list[i]->is_contiguous()) text += " strides " + to_string(list[i]->strides);
    }
  };
  add(signature.inputs, args.inputs);
  add(signature.outputs, args.outputs);
  return text;
}

absl::StatusOr<TuneRecord> parse_record(std::string_view text) {
  const absl::StatusOr<Json> parsed = parse_json(text);
  if (!parsed.ok()) return absl::DataLossError("tuning record: " + message_of(parsed.status()));
  try {
    const Json& json = *parsed;
    if (!json.is_object() || !json.contains("kiln_tuning"))
      return absl::DataLossError("tuning record: must be an object with \"kiln_tuning\"");
    const int version = json.at("kiln_tuning").get<int>();
    if (version != kRecordVersion) {
      return absl::FailedPreconditionError(
          absl::StrFormat("tuning record: must be of version %d, got %d", kRecordVersion, version));
    }
    return record_of(json);
  } catch (const std::exception& e) {
    return absl::DataLossError(absl::StrFormat("tuning record: must be one, got: %s", e.what()));
  }
}

}  // namespace kiln::internal
