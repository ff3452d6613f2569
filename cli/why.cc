#include <kiln/runtime.h>

#include "cache/disk_tier.h"
#include "cache/garbage.h"
#include "cli/cache_folder.h"
#include "cli/call_arguments.h"
#include "cli/device_arguments.h"
#include "cli/help.h"
#include "cli/session.h"
#include "runtime/call_json.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <vector>

// Hit or miss of each program of a call, and on a miss what differs from the nearest artifact there
// is.
namespace kiln::cli {
namespace {

struct WhyArguments {
  std::vector<std::string> call;
  DeviceArguments devices;
};

struct Difference {
  std::string field, want, have;
};

// The fields by name; those of one name in their order, as one value.
std::map<std::string, std::string> by_name(const cache::Artifact& artifact) {
  std::map<std::string, std::string> out;
  const auto add = [&out](const std::string& name, const std::string& value) {
    std::string& all = out[name];
    all += (all.empty() ? "" : " ") + value;
  };
  for (const cache::KeyField& field : artifact.source_fields) add(field.name, field.value);
  for (const cache::KeyField& field : artifact.compiler_fields)
    add("compiler " + field.name, field.value);
  return out;
}

// A source in a few words; anything short as it is.
std::string brief(const std::string& value) {
  if (value.size() <= 200 && value.find('\n') == std::string::npos) return value;
  return absl::StrFormat("(%d bytes, xxh3 %s)", value.size(), to_hex(hash128(value)));
}

std::vector<Difference> differences(const cache::Artifact& wanted, const cache::Artifact& there) {
  const std::map<std::string, std::string> want = by_name(wanted), have = by_name(there);
  std::vector<Difference> out;
  for (const auto& [name, value] : want) {
    const auto other = have.find(name);
    if (other == have.end()) out.push_back({name, brief(value), "(none)"});
    if (other != have.end() && other->second != value)
      out.push_back({name, brief(value), brief(other->second)});
  }
  for (const auto& [name, value] : have) {
    if (want.count(name) == 0) out.push_back({name, "(none)", brief(value)});
  }
  return out;
}

struct Nearest {
  std::string key;  // empty: there is no artifact at all
  std::vector<Difference> differs;
};

// Of the same source file first, then by the number of fields that differ, then by key.
Nearest find_nearest(const std::vector<cache::Artifact>& there, const cache::Artifact& wanted) {
  Nearest nearest;
  std::pair<bool, std::size_t> best;
  for (const cache::Artifact& artifact : there) {
    std::vector<Difference> differs = differences(wanted, artifact);
    const bool other_file = std::any_of(differs.begin(), differs.end(), [](const Difference& d) {
      return d.field == "source_name";
    });
    const std::pair<bool, std::size_t> distance(other_file, differs.size());
    if (!nearest.key.empty() && distance >= best) continue;
    best = distance;
    nearest = {to_hex(artifact.key), std::move(differs)};
  }
  return nearest;
}

// Everything on disk that can be read; nothing where there is no disk cache.
std::vector<cache::Artifact> artifacts_on_disk() {
  std::vector<cache::Artifact> out;
  const absl::StatusOr<std::unique_ptr<cache::CacheDir>> dir = open_cache_folder();
  if (!dir.ok()) return out;
  const auto files = cache::list_artifacts(**dir);
  if (!files.ok()) return out;
  for (const cache::ArtifactFile& file : *files) {
    absl::StatusOr<cache::LoadedFile> loaded = load_artifact(**dir, file.key);
    if (!loaded.ok()) continue;
    loaded->artifact.image.clear();
    out.push_back(std::move(loaded->artifact));
  }
  return out;
}

Json program_json(const Place& place, const tools::PlannedProgram& program,
                  const std::vector<cache::Artifact>& there) {
  Json json;
  json["board"] = place.name;
  json["source"] = program.program.source;
  json["target"] = program.target;
  json["key"] = to_hex(program.key);
  json["tier"] = program.tier ? Json(std::string(cache::to_string(*program.tier))) : Json();
  json["nearest"] = Json();
  json["differs"] = Json::array();
  if (program.tier) return json;
  const Nearest nearest = find_nearest(there, program.wanted);
  if (!nearest.key.empty()) json["nearest"] = nearest.key;
  for (const Difference& difference : nearest.differs) {
    Json one;
    one["field"] = difference.field;
    one["want"] = difference.want;
    one["have"] = difference.have;
    json["differs"].push_back(std::move(one));
  }
  return json;
}

void print_program(const Json& program) {
  const auto text = [](const Json& value) {
    return value.is_null() ? std::string("none") : value.get<std::string>();
  };
  print("%s for %s on %s, key %s: %s\n", text(program["source"]), text(program["target"]),
        text(program["board"]), text(program["key"]),
        program["tier"].is_null() ? "in no tier" : ("in " + text(program["tier"])));
  if (!program["tier"].is_null()) return;
  print("  nearest artifact on disk: %s\n", text(program["nearest"]));
  for (const Json& one : program["differs"]) {
    print("    %-16s want %s, have %s\n", text(one["field"]), text(one["want"]), text(one["have"]));
  }
}

absl::StatusOr<Exit> why(const Session& session, const WhyArguments& arguments) {
  Runtime& runtime = Runtime::instance();
  KILN_ASSIGN_OR_RETURN(const ParsedCall call, parse_one_call(runtime, arguments.call));
  KILN_ASSIGN_OR_RETURN(const std::vector<Place> places,
                        places_of(runtime, arguments.devices, call.device));
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Op> op, runtime.create_op(call.op, call.params));
  const std::vector<cache::Artifact> there = artifacts_on_disk();
  Json programs = Json::array();
  for (const Place& place : places) {
    const ParsedCall here = internal::on_device(call, op->signature(), place.device);
    KILN_ASSIGN_OR_RETURN(const std::vector<tools::PlannedKernel> kernels,
                          tools::look_up_call(*op, here.args, place.device.type, place.facts));
    for (const tools::PlannedKernel& kernel : kernels) {
      KILN_RETURN_IF_ERROR(kernel.selection.error);
      for (const tools::PlannedProgram& program : kernel.programs)
        programs.push_back(program_json(place, program, there));
    }
  }
  if (!session.json) {
    for (const Json& program : programs) print_program(program);
    return Exit::ok;
  }
  // At the top the first one that is missing, else the first.
  const auto missing = std::find_if(programs.begin(), programs.end(),
                                    [](const Json& program) { return program["tier"].is_null(); });
  Json json = programs.empty()            ? Json::object()
              : missing == programs.end() ? programs.front()
                                          : *missing;
  json["programs"] = std::move(programs);
  print_json(json);
  return Exit::ok;
}

}  // namespace

void add_why(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("why", "which tier has what a call needs, and what a miss differs in");
  auto arguments = std::make_shared<WhyArguments>();
  command->add_option("CALL", arguments->call, "an op and its JSON")->required()->expected(1, 2);
  add_device_options(*command, arguments->devices);
  examples(*command, {{"kiln why CALL --board h200",
                       "which tier has it, or which field differs from the nearest artifact"}});
  command->callback([&session, arguments] {
    session.command = [&session, arguments] { return why(session, *arguments); };
  });
}

}  // namespace kiln::cli
