#include <kiln/runtime.h>

#include "cli/cache_folder.h"
#include "cli/call_arguments.h"
#include "cli/device_arguments.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "cli/validators.h"
#include "cli/warm_jobs.h"
#include "runtime/call_json.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>

// Builds what calls need. First all calls are planned, which is quick, so that what is to be built
// is known; then each distinct kernel is built once.
namespace kiln::cli {
namespace {

constexpr std::int64_t kMostJobs = 4096;  // each is a thread

struct WarmArguments {
  CallSource calls;
  DeviceArguments devices;
  int jobs = 0;
  bool dry_run = false;
};

// How a run ended.
struct Outcome {
  WarmSummary summary;
  std::size_t calls = 0;
  std::size_t lost = 0;  // artifacts that were built and are not in the folder
  bool is_dry_run = false, is_interrupted = false;
  double seconds = 0;
};

Json failures_json(const WarmJobs& jobs, Runtime& runtime) {
  Json failures = Json::array();
  for (const WarmFailure& failure : jobs.failures()) {
    const ParsedCall& call = failure.call->call;
    const absl::StatusOr<const Signature*> signature = find_signature(runtime, call.op);
    Json one;
    one["call"] = signature.ok() ? internal::call_to_json(call, **signature) : failure.call->name;
    one["where"] = failure.call->name;
    one["board"] = failure.place->name;
    one["kind"] = internal::kind_name(failure.status);
    one["reason"] = reason_of(failure.status);
    failures.push_back(std::move(one));
  }
  return failures;
}

Json report_json(const WarmJobs& jobs, const Outcome& outcome, Runtime& runtime) {
  const WarmSummary& summary = outcome.summary;
  Json json;
  json["calls"] = outcome.calls;
  json["boards"] = jobs.place_names();
  json["dry_run"] = outcome.is_dry_run;
  json["identities"] = summary.identities;
  json["programs"] = summary.programs;
  json["compiled"] = summary.compiled;
  json["built"] = summary.built;
  json["hits"] = hits_json(summary);
  json["missing"] = summary.missing;
  json["failed"] = jobs.failures().size();
  json["failures"] = failures_json(jobs, runtime);
  json["not_kept"] = outcome.lost;
  json["interrupted"] = outcome.is_interrupted;
  json["not_done"] = summary.not_done;
  json["seconds"] = outcome.seconds;
  return json;
}

void print_report(const WarmJobs& jobs, const Outcome& outcome, const std::string& folder) {
  const WarmSummary& summary = outcome.summary;
  for (const WarmFailure& failure : jobs.failures()) {
    print("failed: %s on %s: %s\n", failure.call->name, failure.place->name,
          indented(reason_of(failure.status), 2));
  }
  std::string hits;
  for (const auto& [tier, count] : summary.hits)
    hits += absl::StrFormat(", %d from %s", count, cache::to_string(tier));
  if (outcome.is_dry_run) {
    print("%zu calls need %zu identities (%zu programs): %zu to be built%s; %zu failed\n",
          outcome.calls, summary.identities, summary.programs, summary.missing, hits,
          jobs.failures().size());
    return;
  }
  print("%zu identities: %zu built%s; %zu failed; %s\n", summary.identities, summary.built, hits,
        jobs.failures().size(), seconds_text(outcome.seconds));
  if (outcome.lost > 0) {
    print(
        "not kept: %zu artifacts were built and are not in %s: it is full, or more than it may "
        "hold (KILN_CACHE_MAX_BYTES)\n",
        outcome.lost, folder);
  }
  if (outcome.is_interrupted) {
    print("interrupted: %zu identities were not begun; what was built is kept\n", summary.not_done);
  } else if (summary.built == 0 && jobs.failures().empty()) {
    print("nothing was built: all of it was there\n");
  }
}

// Of the programs that no tier had.
std::set<cache::CompileKey> compiled_keys(const WarmJobs& jobs) {
  std::set<cache::CompileKey> keys;
  for (const WarmJob& job : jobs.jobs()) {
    for (const WarmKernel& kernel : job.kernels) {
      for (const WarmProgram& program : kernel.programs) {
        if (!program.tier) keys.insert(program.key);
      }
    }
  }
  return keys;
}

absl::StatusOr<Exit> warm(const Session& session, const WarmArguments& arguments) {
  const absl::Time start = absl::Now();
  const int threads = arguments.jobs != 0
                          ? arguments.jobs
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Runtime& runtime = Runtime::instance();
  KILN_ASSIGN_OR_RETURN(const std::vector<NamedCall> calls, read_calls(runtime, arguments.calls));
  if (!arguments.dry_run) KILN_RETURN_IF_ERROR(check_cache_keeps());
  const Interrupt interrupt;
  WarmJobs jobs(runtime);
  KILN_RETURN_IF_ERROR(jobs.plan(calls, arguments.devices, interrupt));
  if (!arguments.dry_run) {
    std::size_t kernels = 0;
    for (const WarmJob& job : jobs.jobs()) kernels += job.wanted.size();
    tell("%zu calls on %zu boards need %zu kernels\n", calls.size(), jobs.place_names().size(),
         kernels);
  }
  const WarmMode mode = arguments.dry_run ? WarmMode::look : WarmMode::build;
  jobs.run(threads, mode, interrupt);
  // Artifacts are written behind; a warm cache is one that is on the disk.
  if (!tools::store(runtime).flush(absl::Minutes(10)))
    return absl::UnavailableError(
        "cache: what was built must be written, got no end of it in time");
  std::size_t lost = 0;
  if (!arguments.dry_run) {
    KILN_ASSIGN_OR_RETURN(lost, count_not_kept(compiled_keys(jobs)));
  }
  const Outcome outcome{summarise(jobs.jobs(), mode),
                        calls.size(),
                        lost,
                        arguments.dry_run,
                        interrupt.requested(),
                        absl::ToDoubleSeconds(absl::Now() - start)};
  if (session.json)
    print_json(report_json(jobs, outcome, runtime));
  else
    print_report(jobs, outcome, tools::store(runtime).disk_dir());
  const bool is_done = jobs.failures().empty() && outcome.lost == 0;
  return interrupt.exit_or(is_done ? Exit::ok : Exit::cannot_do);
}

}  // namespace

void add_warm(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("warm", "build what calls need, without a GPU, into the cache");
  auto arguments = std::make_shared<WarmArguments>();
  add_call_file_options(*command, arguments->calls);
  command->add_option("CALL", arguments->calls.words, "ops and their JSON");
  command
      ->add_option("--jobs", arguments->jobs,
                   "builds at once; 0, the default: as many as there are cores")
      ->type_name("N")
      ->check(between(0, kMostJobs));
  command->add_flag("--dry-run", arguments->dry_run, "only count, and look what is there");
  add_device_options(*command, arguments->devices);
  examples(
      *command,
      {
          {"kiln warm --calls calls.jsonl --board h200,a100",
           "for two boards, on a machine without either"},
          {"kiln warm --calls calls.jsonl --board h200 --dry-run", "how much that would be"},
          {"kiln warm --calls recorded.jsonl", "for the devices that the calls were recorded on"},
      });
  command->callback([&session, arguments] {
    session.command = [&session, arguments] { return warm(session, *arguments); };
  });
}

}  // namespace kiln::cli
