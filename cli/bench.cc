#include "cli/bench.h"

#include <kiln/runtime.h>
#include <kiln/version.h>

#include "cli/bench_programs.h"
#include "cli/bench_spread.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/validators.h"
#include "jit/process.h"

#include <CLI/CLI.hpp>
#include <absl/cleanup/cleanup.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <unistd.h>

// Runs the benchmark programs that are built beside `kiln`, one after the other, and puts their
// results into one file of the form of docs/benchmarks.md.
namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

struct BenchArguments {
  std::string filter, json, commit;
  int within = 480;  // seconds, without `full`
  bool full = false, list = false;
};

// Exit status of a program that cannot do its work on this machine.
constexpr int kCannotDoHere = 3;

// What a program with a deadline keeps of the time to end.
constexpr absl::Duration kReserve = absl::Seconds(25);

absl::StatusOr<Json> read_json(const fs::path& file, const char* program) {
  std::ifstream in(file);
  Json json = Json::parse(in, nullptr, false);
  if (json.is_object()) return json;
  return absl::InternalError(
      absl::StrFormat("%s must write its results: got none that can be read", program));
}

// Repetitions of Google Benchmark as workloads: processor time, or elapsed time where asked for.
Json workloads_of(const Json& google, const char* family) {
  static const std::map<std::string, double> kMicroseconds = {
      {"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}};
  std::vector<std::string> order;
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, bool> is_wall;
  for (const Json& one : google.value("benchmarks", Json::array())) {
    if (one.value("run_type", "") != "iteration" || one.value("error_occurred", false)) continue;
    const std::string name = one.value("run_name", "");
    const bool wall =
        name.find("/real_time") != name.npos || name.find("/manual_time") != name.npos;
    if (values.find(name) == values.end()) order.push_back(name);
    values[name].push_back(one.value(wall ? "real_time" : "cpu_time", 0.0) *
                           kMicroseconds.at(one.value("time_unit", "ns")));
    is_wall[name] = wall;
  }
  Json workloads = Json::array();
  for (const std::string& name : order) {
    workloads.push_back(
        {{"name", absl::StrFormat("%s: %s", family, name)},
         {"family", family},
         {"contenders", Json::array({bench::contender("kiln", is_wall[name] ? "wall" : "processor",
                                                      values[name])})}});
  }
  return workloads;
}

// Adds what one program found. Throws what nlohmann::json does where it has another form.
void merge(const BenchProgram& one, Json found, Json& results) {
  Json workloads = one.is_google_benchmark ? workloads_of(found, one.family)
                                           : found.value("workloads", Json::array());
  for (Json& workload : workloads) results["workloads"].push_back(std::move(workload));
  for (Json& skipped : found["not_run"]) results["not_run"].push_back(std::move(skipped));
  for (const char* field : {"machine", "instructions", "peers"}) {
    if (found.contains(field)) results[field].update(found[field]);
  }
  for (const char* field : {"method", "floor"}) {
    if (found.contains(field)) results[field] = found[field];
  }
}

// A run of several programs.
struct BenchRun {
  const BenchArguments& arguments;
  const fs::path folder, scratch;  // of the programs, of what they write
  const absl::Time end;            // InfiniteFuture with --full
  const Interrupt& interrupt;
};

std::vector<std::string> words_of(const BenchProgram& one, const BenchRun& run,
                                  const std::string& file) {
  std::vector<std::string> words = {(run.folder / one.name).string()};
  if (one.is_google_benchmark) {
    words.insert(words.end(), {"--benchmark_out=" + file, "--benchmark_out_format=json"});
  } else {
    words.insert(words.end(), {"--json", file});
  }
  const std::vector<std::string>& more = run.arguments.full ? one.full : one.quick;
  words.insert(words.end(), more.begin(), more.end());
  if (one.has_deadline && run.end < absl::InfiniteFuture()) {
    const absl::Duration left = std::max(run.end - kReserve - absl::Now(), absl::Seconds(1));
    words.insert(words.end(), {"--deadline", std::to_string(absl::ToInt64Seconds(left))});
  }
  return words;
}

// Runs one and adds what it found to `results`. Unavailable: it cannot do its work on this machine,
// or there is no time for it.
absl::Status run_one(const BenchProgram& one, const BenchRun& run, Json& results) {
  const auto no_time = [&] {
    return absl::UnavailableError(
        absl::StrFormat("takes longer than is left of the %d s of --within", run.arguments.within));
  };
  if (absl::Now() >= run.end) return no_time();
  const std::string file = (run.scratch / (std::string(one.name) + ".json")).string();
  const std::vector<std::string> words = words_of(one, run, file);
  std::vector<std::string> environment;
  for (char** word = environ; *word != nullptr; ++word) environment.emplace_back(*word);
  const absl::StatusOr<jit::ProcessResult> result =
      jit::run_process({.program = words[0],
                        .arguments = words,
                        .environment = environment,
                        .deadline = run.end,
                        .cancelled = [&] { return run.interrupt.requested(); }});
  if (absl::IsDeadlineExceeded(result.status())) return no_time();
  if (absl::IsCancelled(result.status())) return absl::CancelledError("interrupted");
  KILN_RETURN_IF_ERROR(result.status());
  if (result->exit_status == kCannotDoHere) {
    const absl::string_view reason = absl::StripTrailingAsciiWhitespace(result->output);
    return absl::UnavailableError(reason);
  }
  if (result->exit_status != 0)
    return absl::InternalError(absl::StrFormat("%s: must succeed: ended with status %d: %s",
                                               one.name, result->exit_status, result->output));
  KILN_ASSIGN_OR_RETURN(Json found, read_json(file, one.name));
  try {
    Json with = results;  // all of it or nothing
    merge(one, std::move(found), with);
    results = std::move(with);
  } catch (const Json::exception& e) {
    return absl::InternalError(absl::StrFormat(
        "%s: must write its results as docs/benchmarks.md says: %s", one.name, e.what()));
  }
  return absl::OkStatus();
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

Json empty_results(const BenchArguments& arguments) {
  std::string command = "kiln bench";
  if (arguments.full) command += " --full";
  if (!arguments.full && arguments.within != BenchArguments().within)
    command += absl::StrFormat(" --within %d", arguments.within);
  if (!arguments.filter.empty()) command += " --filter '" + arguments.filter + "'";
  const unsigned threads = std::thread::hardware_concurrency();
  return {{"format", "kiln-bench"},
          {"version", 1},
          {"date", absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())},
          {"command", command},
          {"commit", arguments.commit},
          {"machine",
           {{"host", absl::StrFormat("%s, %d threads", processor_name(), threads)},
            {"host_threads", threads},
            {"kiln", KILN_VERSION_STRING}}},
          {"instructions", Json::object()},
          {"peers", Json::object()},
          {"workloads", Json::array()},
          {"not_run", Json::array()}};
}

void print_results(const Json& results) {
  for (const Json& workload : results["workloads"]) {
    print("%s\n", workload.value("name", ""));
    for (const Json& one : workload["contenders"]) {
      if (!one.contains("us")) continue;
      const Json& us = one["us"];
      print("  %-20s %14.3f us (%.3f-%.3f) %s\n", one.value("name", ""), us.value("median", 0.0),
            us.value("p10", 0.0), us.value("p90", 0.0), one.value("clock", ""));
    }
  }
  for (const auto& [name, count] : results["instructions"].items())
    print("%s: %d instructions\n", name, count.get<int>());
  for (const Json& one : results["not_run"])
    print("not run: %s: %s\n", one.value("name", ""), one.value("reason", ""));
}

using Names = std::set<std::string_view>;

bool is_needed(const BenchProgram& one, const Names& has_run) {
  return one.unless == nullptr || has_run.count(one.unless) == 0;
}

// With the programs from `next` on, which have not had their turn.
absl::Status write_results(const std::string& file, Json results,
                           const std::vector<BenchProgram>& chosen, std::size_t next,
                           const Names& has_run) {
  for (; next < chosen.size(); ++next) {
    if (!is_needed(chosen[next], has_run)) continue;
    results["not_run"].push_back(
        {{"name", chosen[next].name}, {"reason", "kiln bench had not come to it"}});
  }
  return write_output("--json", file,
                      results.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

// All of `chosen`, in turn, and after each the file of results. One that fails costs its own; the
// first such error is returned.
absl::Status run_all(const std::vector<BenchProgram>& chosen, const BenchRun& run, Json& results) {
  Names has_run;
  absl::Status first_error;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const BenchProgram& one = chosen[i];
    if (!is_needed(one, has_run)) continue;
    absl::Status status = absl::CancelledError("interrupted");
    if (!run.interrupt.requested()) {
      tell("kiln bench: %s: %s\n", one.name, one.means);
      const absl::Time begun = absl::Now();
      status = run_one(one, run, results);
      results["seconds"][one.name] = absl::ToDoubleSeconds(absl::Now() - begun);
    }
    if (status.ok()) {
      has_run.insert(one.name);
    } else {
      // A program may begin what it says with its name.
      const std::string reason(absl::StripPrefix(reason_of(status), std::string(one.name) + ": "));
      results["not_run"].push_back({{"name", one.name}, {"reason", reason}});
    }
    if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) first_error.Update(status);
    if (!run.arguments.json.empty()) {
      KILN_RETURN_IF_ERROR(write_results(run.arguments.json, results, chosen, i + 1, has_run));
    }
  }
  return first_error;
}

absl::StatusOr<std::string> make_scratch() {
  std::error_code failed;
  std::string scratch = (fs::temp_directory_path(failed) / "kiln-bench-XXXXXX").string();
  if (!failed && ::mkdtemp(scratch.data()) != nullptr) return scratch;
  return absl::FailedPreconditionError(
      absl::StrFormat("TMPDIR must be a folder in which files can be made: got %s",
                      failed ? failed.message() : fs::path(scratch).parent_path().string()));
}

void print_programs(const std::vector<BenchProgram>& chosen, bool json) {
  Json list = Json::array();
  for (const BenchProgram& one : chosen) {
    list.push_back({{"name", one.name}, {"means", one.means}});
    if (!json) print("%-18s %s\n", one.name, one.means);
  }
  if (json) print_json(list);
}

absl::StatusOr<Exit> bench_command(const Session& session, const BenchArguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const auto chosen, chosen_programs(arguments.filter));
  if (arguments.list) {
    print_programs(chosen, session.json);
    return Exit::ok;
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  KILN_RETURN_IF_ERROR(check_built(chosen, folder));
  // Before minutes are spent.
  if (!arguments.json.empty()) KILN_RETURN_IF_ERROR(check_output("--json", arguments.json));
  KILN_ASSIGN_OR_RETURN(const std::string scratch, make_scratch());
  const absl::Cleanup remove = [&] { fs::remove_all(scratch); };
  const Interrupt interrupt("the program under way is ended");
  const absl::Time end =
      arguments.full ? absl::InfiniteFuture() : absl::Now() + absl::Seconds(arguments.within);
  Json results = empty_results(arguments);
  const absl::Status status =
      run_all(chosen, {arguments, folder, scratch, end, interrupt}, results);
  if (session.json) {
    print_json(results);
  } else {
    print_results(results);
  }
  KILN_RETURN_IF_ERROR(status);
  const bool found = !results["workloads"].empty() || !results["instructions"].empty();
  return interrupt.exit_or(found ? Exit::ok : Exit::cannot_do);
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command =
      app.add_subcommand("bench", "run the benchmark programs that are built beside kiln");
  command->add_option("--filter", arguments->filter,
                      "only the programs whose name this expression finds");
  command->add_option("--json", arguments->json, "write the results here, as JSON")
      ->type_name("FILE");
  command->add_option("--commit", arguments->commit, "what was built, for the results");
  command->add_flag("--full", arguments->full, "take the time that steady figures need");
  command
      ->add_option("--within", arguments->within,
                   "seconds that all of it may take without --full; what does not fit is named")
      ->check(between(1, 1000000))
      ->capture_default_str();
  command->add_flag("--list", arguments->list, "print the programs and end");
  examples(*command,
           {{"kiln bench --json after.json", "all of them; without a device, all but the kernels"},
            {"kiln bench --filter host_path", "what a call that hits costs the host"},
            {"bench/compare.py before.json after.json", "what moved between two runs"}});
  command->callback([&session, arguments] {
    session.command = [&session, arguments] { return bench_command(session, *arguments); };
  });
}

}  // namespace kiln::cli
