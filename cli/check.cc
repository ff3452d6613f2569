#include <kiln/runtime.h>

#include "cli/call_arguments.h"
#include "cli/device_arguments.h"
#include "cli/help.h"
#include "cli/session.h"
#include "runtime/call_json.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

// Proof before a deployment that must not compile: everything the calls need is there.
namespace kiln::cli {
namespace {

struct CheckArguments {
  std::string file;
  std::string pack;
  DeviceArguments devices;
};

struct Checked {
  std::set<std::tuple<std::string, std::string, std::string>> identities;
  std::map<cache::TierKind, std::int64_t> hits;
  std::int64_t missing = 0, failed = 0;
  Json failures = Json::array();

  void fail(const NamedCall& call, const Place& place, const std::string& reason) {
    Json one;
    one["call"] = call.call.op;
    one["where"] = call.name;
    one["board"] = place.name;
    one["reason"] = reason;
    failures.push_back(std::move(one));
  }
};

absl::Status check_one(Runtime& runtime, const NamedCall& call, const Place& place, Checked& out) {
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Op> op,
                        runtime.create_op(call.call.op, call.call.params));
  const ParsedCall here = internal::on_device(call.call, op->signature(), place.device);
  KILN_ASSIGN_OR_RETURN(const std::vector<tools::PlannedKernel> kernels,
                        tools::look_up_call(*op, here.args, place.device.type, place.facts));
  for (const tools::PlannedKernel& kernel : kernels) {
    KILN_RETURN_IF_ERROR(kernel.selection.error);
    if (!out.identities
             .emplace(*kernel.selection.chosen, kernel.identity.hash(), to_string(place.facts))
             .second)
      continue;
    cache::TierKind slowest = cache::TierKind::memory;
    bool missing = false;
    for (const tools::PlannedProgram& program : kernel.programs) {
      if (program.tier) {
        slowest = std::max(slowest, *program.tier);
        continue;
      }
      missing = true;
      out.fail(call, place,
               absl::StrFormat("%s: no tier has %s for %s, key %s", *kernel.selection.chosen,
                               program.program.source, program.target, to_hex(program.key)));
    }
    ++(missing ? out.missing : out.hits[slowest]);
  }
  return absl::OkStatus();
}

// With --pack nothing but that pack counts, neither the cache folder nor the layers of this
// machine.
absl::StatusOr<std::unique_ptr<Runtime>> runtime_for(const CheckArguments& arguments) {
  RuntimeOptions options = RuntimeOptions::from_environment();
  if (!arguments.pack.empty()) {
    options.cache_dir.clear();
    options.cache_layers = {arguments.pack};
  }
  auto runtime = std::make_unique<Runtime>(std::move(options));
  if (arguments.pack.empty()) return runtime;
  for (const cache::LayerInfo& layer : tools::store(*runtime).layers()) {
    if (!layer.reason.empty()) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "--pack must be a pack that can be used: %s: %s", layer.path, layer.reason));
    }
  }
  return runtime;
}

Json to_json(const Checked& checked, std::size_t calls, double seconds) {
  Json json;
  json["calls"] = calls;
  json["identities"] = checked.identities.size();
  json["built"] = 0;
  for (cache::TierKind tier : {cache::TierKind::memory, cache::TierKind::disk,
                               cache::TierKind::layer, cache::TierKind::remote}) {
    const auto it = checked.hits.find(tier);
    json["hits"][std::string(cache::to_string(tier))] = it == checked.hits.end() ? 0 : it->second;
  }
  json["missing"] = checked.missing;
  json["failed"] = checked.failed;
  json["failures"] = checked.failures;
  json["seconds"] = seconds;
  return json;
}

absl::StatusOr<Exit> check(const Session& session, const CheckArguments& arguments) {
  const absl::Time start = absl::Now();
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime, runtime_for(arguments));
  runtime->load_backends();
  KILN_ASSIGN_OR_RETURN(const std::vector<NamedCall> calls,
                        read_call_file(*runtime, arguments.file));
  KILN_ASSIGN_OR_RETURN(const std::vector<Place> places,
                        places_of(*runtime, arguments.devices, std::nullopt));
  Checked checked;
  for (const NamedCall& call : calls) {
    for (const Place& place : places) {
      const absl::Status status = check_one(*runtime, call, place, checked);
      if (status.ok()) continue;
      ++checked.failed;
      checked.fail(call, place, message_of(status));
    }
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  if (session.json) {
    print_json(to_json(checked, calls.size(), seconds));
  } else {
    for (const Json& one : checked.failures) {
      std::printf("missing: %s on %s: %s\n", one["where"].get<std::string>().c_str(),
                  one["board"].get<std::string>().c_str(),
                  indented(one["reason"].get<std::string>(), 2).c_str());
    }
    std::printf("%zu identities: %lld missing, %lld calls that cannot be served\n",
                checked.identities.size(), static_cast<long long>(checked.missing),
                static_cast<long long>(checked.failed));
  }
  return checked.missing == 0 && checked.failed == 0 ? Exit::ok : Exit::cannot_do;
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("check", "whether everything that calls need is there; compiles nothing");
  auto arguments = std::make_shared<CheckArguments>();
  command->add_option("--calls", arguments->file, "a file with one CALL a line; - is stdin")
      ->type_name("FILE")
      ->required();
  command->add_option("--pack", arguments->pack, "look in this pack alone")->type_name("FILE");
  add_device_options(*command, arguments->devices);
  examples(*command,
           {{"kiln check --calls calls.jsonl --board h200", "the cache and layers of this machine"},
            {"kiln check --calls calls.jsonl --board h200 --pack kernels.kpack",
             "a pack alone, before it is shipped"}});
  command->callback([&session, arguments] {
    session.command = [&session, arguments] { return check(session, *arguments); };
  });
}

}  // namespace kiln::cli
