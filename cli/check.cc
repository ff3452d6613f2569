#include <kiln/runtime.h>

#include "cli/call_arguments.h"
#include "cli/device_arguments.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "cli/warm_jobs.h"
#include "runtime/call_json.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <vector>

// Proof before a deployment that must not compile: everything the calls need is there.
namespace kiln::cli {
namespace {

struct CheckArguments {
  CallSource calls;
  std::string pack;
  DeviceArguments devices;
};

// Everything that is missing, in the order of the calls.
Json failures_json(const WarmJobs& jobs) {
  Json failures = Json::array();
  const auto fail = [&](const NamedCall& call, const Place& place, const std::string& reason) {
    Json one;
    one["call"] = call.call.op;
    one["where"] = call.name;
    one["board"] = place.name;
    one["reason"] = reason;
    failures.push_back(std::move(one));
  };
  for (const WarmJob& job : jobs.jobs()) {
    for (const WarmKernel& kernel : job.kernels) {
      for (const WarmProgram& program : kernel.programs) {
        if (program.tier) continue;
        fail(*job.call, *job.place,
             absl::StrFormat("%s: no tier has %s for %s, key %s", kernel.key, program.source,
                             program.target, to_hex(program.key)));
      }
    }
  }
  for (const WarmFailure& failure : jobs.failures())
    fail(*failure.call, *failure.place, reason_of(failure.status));
  return failures;
}

// With --pack nothing but that pack counts: not the cache folder, the layers or the remote cache of
// this machine.
absl::StatusOr<std::unique_ptr<Runtime>> runtime_for(const CheckArguments& arguments) {
  RuntimeOptions options = RuntimeOptions::from_environment();
  if (!arguments.pack.empty()) {
    KILN_RETURN_IF_ERROR(must_be_there("--pack", arguments.pack));
    options.cache_dir.clear();
    options.cache_remote = {};
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

absl::StatusOr<Exit> check(const Session& session, const CheckArguments& arguments) {
  const absl::Time start = absl::Now();
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime, runtime_for(arguments));
  runtime->load_backends();
  KILN_ASSIGN_OR_RETURN(const std::vector<NamedCall> calls,
                        read_call_file(*runtime, arguments.calls));
  const Interrupt interrupt;
  WarmJobs jobs(*runtime);
  KILN_RETURN_IF_ERROR(jobs.plan(calls, arguments.devices, interrupt));
  jobs.run(1, WarmMode::look_as_under_forbid, interrupt);
  const WarmSummary summary = summarise(jobs.jobs(), WarmMode::look_as_under_forbid);
  const Json failures = failures_json(jobs);
  if (session.json) {
    Json json;
    json["calls"] = calls.size();
    json["identities"] = summary.identities;
    json["built"] = 0;
    json["hits"] = hits_json(summary);
    json["missing"] = summary.missing;
    json["failed"] = jobs.failures().size();
    json["failures"] = failures;
    json["interrupted"] = interrupt.requested();
    json["seconds"] = absl::ToDoubleSeconds(absl::Now() - start);
    print_json(json);
  } else {
    for (const Json& one : failures) {
      print("missing: %s on %s: %s\n", one["where"].get<std::string>(),
            one["board"].get<std::string>(), indented(one["reason"].get<std::string>(), 2));
    }
    print("%zu identities: %zu missing, %zu calls that cannot be served\n", summary.identities,
          summary.missing, jobs.failures().size());
    if (interrupt.requested()) print("interrupted: this proves nothing about the rest\n");
  }
  return interrupt.exit_or(failures.empty() ? Exit::ok : Exit::cannot_do);
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("check", "whether everything that calls need is there; compiles nothing");
  auto arguments = std::make_shared<CheckArguments>();
  add_call_file_options(*command, arguments->calls)->required();
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
