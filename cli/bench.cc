#include "cli/bench.h"

#include <kiln/runtime.h>
#include <kiln/version.h>

#include "cli/bench_spread.h"
#include "cli/help.h"
#include "jit/process.h"

#include <CLI/CLI.hpp>
#include <absl/cleanup/cleanup.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
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

struct BenchProgram {
  const char* name;
  const char* family;
  const char* means;
  bool is_google_benchmark;
  std::vector<std::string> quick, full;  // arguments
  bool has_deadline = false;             // takes --deadline SECONDS
  const char* unless = nullptr;          // not needed where this one has run
};

// Exit status of a program that cannot do its work on this machine.
constexpr int kCannotDoHere = 3;

// What a program with a deadline keeps of the time to end.
constexpr absl::Duration kReserve = absl::Seconds(25);

const std::vector<BenchProgram>& programs() {
  static const auto* const all = new std::vector<BenchProgram>{
      {"host_path",
       "host path",
       "what a call that hits costs the host",
       true,
       {"--benchmark_filter=^(bare|find|whole)", "--benchmark_min_time=0.05",
        "--benchmark_repetitions=7"},
       {"--benchmark_filter=^(bare|find|whole)", "--benchmark_repetitions=15"}},
      {"cache_bench",
       "cache",
       "hits in memory, on disk and in packs; what writing costs",
       true,
       {"--benchmark_filter=-cold:1", "--benchmark_min_time=0.02", "--benchmark_repetitions=3"},
       {"--benchmark_repetitions=9"}},
      {"first_call",
       "first call",
       "a cold build beside bare NVRTC, and the next process",
       false,
       {"7"},
       {"15"}},
      {"warm_scaling",
       "warm scaling",
       "compile workers beside independent NVRTC processes",
       false,
       {"24"},
       {"96"}},
      {"count_instructions",
       "host path",
       "instructions of a call that hits, by valgrind",
       false,
       {},
       {}},
      {"tuning_cost",
       "tuning cost",
       "a search on the CPU backend, and the next process, which finds its record",
       false,
       {"3"},
       {"9"}},
      {"kiln_serving",
       "serving",
       "what users of a service feel, warm and cold; on a device where there is one",
       false,
       {"--device", "best", "--requests", "1000", "--rate", "500"},
       {"--device", "best", "--requests", "20000", "--rate", "1000"}},
      {"peers.py",
       "kernels",
       "the kernels beside other libraries, and their calls' host time; needs a device and PyTorch",
       false,
       {"--measure-ms", "40", "--prewarm", "12", "--peer-limit", "30"},
       {"--prewarm", "8"},
       /*has_deadline=*/true},
      {"gpu_bench",
       "kernels",
       "the kernels beside copies, where peers.py cannot run; needs a device",
       false,
       {"--measure-ms", "25", "--no-graph"},
       {},
       /*has_deadline=*/false,
       /*unless=*/"peers.py"},
  };
  return *all;
}

absl::StatusOr<std::vector<BenchProgram>> chosen_programs(const std::string& filter) {
  std::vector<BenchProgram> chosen;
  std::vector<std::string> names;
  try {
    const std::regex expression(filter);
    for (const BenchProgram& one : programs()) {
      names.push_back(one.name);
      if (std::regex_search(one.name, expression)) chosen.push_back(one);
    }
  } catch (const std::regex_error& e) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--filter: must be a regular expression: got \"%s\" (%s)", filter, e.what()));
  }
  if (!chosen.empty()) return chosen;
  return absl::InvalidArgumentError(absl::StrFormat("--filter: must find one of %s: got \"%s\"",
                                                    absl::StrJoin(names, ", "), filter));
}

// All that are to run must be there before the first one starts.
absl::Status check_built(const std::vector<BenchProgram>& chosen, const fs::path& folder) {
  std::vector<std::string> missing;
  for (const BenchProgram& one : chosen) {
    if (::access((folder / one.name).c_str(), X_OK) != 0) missing.push_back(one.name);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the benchmark programs must be beside kiln, in %s: got no %s; build them (ninja -C BUILD "
      "%s), or leave them out with --filter",
      folder.string(), absl::StrJoin(missing, ", "), absl::StrJoin(missing, " ")));
}

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

// Adds what one program found.
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

// Runs one, until `end` if it takes a deadline, and adds what it found to `results`. False: it
// cannot do its work on this machine.
absl::StatusOr<bool> run_one(const BenchProgram& one, const fs::path& folder,
                             const fs::path& scratch, const BenchArguments& arguments,
                             absl::Time end, Json& results) {
  const fs::path file = scratch / (std::string(one.name) + ".json");
  std::vector<std::string> words = {(folder / one.name).string()};
  if (one.is_google_benchmark) {
    words.insert(words.end(), {"--benchmark_out=" + file.string(), "--benchmark_out_format=json"});
  } else {
    words.insert(words.end(), {"--json", file.string()});
  }
  const std::vector<std::string>& more = arguments.full ? one.full : one.quick;
  words.insert(words.end(), more.begin(), more.end());
  if (one.has_deadline && !arguments.full) {
    const absl::Duration left = std::max(end - kReserve - absl::Now(), absl::Seconds(1));
    words.insert(words.end(), {"--deadline", std::to_string(absl::ToInt64Seconds(left))});
  }
  std::vector<std::string> environment;
  for (char** word = environ; *word != nullptr; ++word) environment.emplace_back(*word);
  KILN_ASSIGN_OR_RETURN(
      const jit::ProcessResult result,
      jit::run_process({.program = words[0], .arguments = words, .environment = environment}));
  if (result.exit_status == kCannotDoHere) {
    const absl::string_view reason = absl::StripTrailingAsciiWhitespace(result.output);
    results["not_run"].push_back({{"name", one.name}, {"reason", std::string(reason)}});
    return false;
  }
  if (result.exit_status != 0)
    return absl::InternalError(absl::StrFormat("%s: must succeed: ended with status %d: %s",
                                               one.name, result.exit_status, result.output));
  KILN_ASSIGN_OR_RETURN(Json found, read_json(file, one.name));
  merge(one, std::move(found), results);
  return true;
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

absl::Status write_results(const std::string& file, const Json& results) {
  std::ofstream out(file);
  out << results.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  out.flush();
  if (out) return absl::OkStatus();
  return absl::InvalidArgumentError("--json: must be a file that can be written: got " + file);
}

// All of `chosen`, in turn. One that fails costs its own results; the first such error is returned.
absl::Status run_all(const std::vector<BenchProgram>& chosen, const fs::path& folder,
                     const BenchArguments& arguments, Json& results) {
  const absl::Time end = absl::Now() + absl::Seconds(arguments.within);
  std::string scratch = (fs::temp_directory_path() / "kiln-bench-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr)
    return absl::FailedPreconditionError("a temporary folder must be makeable: got " + scratch);
  const absl::Cleanup remove = [&] { fs::remove_all(scratch); };
  std::set<std::string_view> has_run;
  absl::Status first_error;
  for (const BenchProgram& one : chosen) {
    if (one.unless != nullptr && has_run.count(one.unless) > 0) continue;
    tell("kiln bench: %s: %s\n", one.name, one.means);
    const absl::Time begun = absl::Now();
    const absl::StatusOr<bool> ran = run_one(one, folder, scratch, arguments, end, results);
    if (ran.ok() && *ran) has_run.insert(one.name);
    if (!ran.ok())
      results["not_run"].push_back({{"name", one.name}, {"reason", reason_of(ran.status())}});
    first_error.Update(ran.status());
    results["seconds"][one.name] = absl::ToDoubleSeconds(absl::Now() - begun);
    if (!arguments.json.empty()) KILN_RETURN_IF_ERROR(write_results(arguments.json, results));
  }
  return first_error;
}

absl::StatusOr<Exit> bench_command(const BenchArguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const auto chosen, chosen_programs(arguments.filter));
  if (arguments.list) {
    for (const BenchProgram& one : chosen) print("%-18s %s\n", one.name, one.means);
    return Exit::ok;
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  KILN_RETURN_IF_ERROR(check_built(chosen, folder));
  Json results = empty_results(arguments);
  // Before minutes are spent, whether the file can be written.
  if (!arguments.json.empty()) KILN_RETURN_IF_ERROR(write_results(arguments.json, results));
  const absl::Status status = run_all(chosen, folder, arguments, results);
  print_results(results);
  KILN_RETURN_IF_ERROR(status);
  return results["workloads"].empty() ? Exit::cannot_do : Exit::ok;
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
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--list", arguments->list, "print the programs and end");
  examples(*command,
           {{"kiln bench --json after.json", "all of them; without a device, all but the kernels"},
            {"kiln bench --filter host_path", "what a call that hits costs the host"},
            {"bench/compare.py before.json after.json", "what moved between two runs"}});
  command->callback([&session, arguments] {
    session.command = [arguments] { return bench_command(*arguments); };
  });
}

}  // namespace kiln::cli
