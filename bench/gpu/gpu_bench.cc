// Times Kiln's kernels on a device over the workloads of the families, beside copies of the same
// size. `peers.py` does the same with other libraries in the same rounds.
#include "base/file_system.h"
#include "bench/gpu/kiln_call.h"
#include "bench/gpu/suite.h"
#include "bench/gpu/workloads.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace kiln::bench {
namespace {

using internal::Json;

struct Arguments {
  std::string family, filter, json, cupti, commit, command;
  std::optional<std::string> configs;
  int device = 0;
  bool list = false, all_implementations = false, warm_l2 = false, no_graph = false;
  double measure_ms = 100;
};

// What is asked for cannot be done here; 2 is for wrong usage.
constexpr int kCannotDo = 3, kUsage = 2;

int fail(const absl::Status& status) {
  std::fprintf(stderr, "gpu_bench: %s\n", message_of(status).c_str());
  const bool usage = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return usage ? kUsage : kCannotDo;
}

absl::StatusOr<std::regex> regex_of(const char* option, const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& e) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: must be a regular expression: got \"%s\" (%s)", option, text, e.what()));
  }
}

absl::StatusOr<std::vector<Workload>> chosen_workloads(Runtime& runtime, const Arguments& arguments,
                                                       const std::regex& filter) {
  KILN_ASSIGN_OR_RETURN(std::vector<Workload> all, perf_workloads(runtime, arguments.family));
  std::vector<Workload> chosen;
  for (Workload& one : all) {
    if (std::regex_search(one.name, filter)) chosen.push_back(std::move(one));
  }
  if (chosen.empty())
    return absl::NotFoundError(
        absl::StrFormat("--filter: must match a workload: got \"%s\", which matches none of %d; "
                        "--list shows them",
                        arguments.filter, all.size()));
  return chosen;
}

absl::Status list(const Arguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const std::regex filter, regex_of("--filter", arguments.filter));
  Runtime runtime(RuntimeOptions::from_environment());
  KILN_ASSIGN_OR_RETURN(const std::vector<Workload> workloads,
                        chosen_workloads(runtime, arguments, filter));
  for (const Workload& one : workloads) {
    KILN_ASSIGN_OR_RETURN(const Json json, json_of(runtime, one));
    std::printf("%s\n", internal::dump(json).c_str());
  }
  return absl::OkStatus();
}

// What is timed beside the copy, and how far its outputs are from those of the first.
struct Candidate {
  std::string name;
  std::unique_ptr<KilnCall> call;
  std::optional<double> difference;
};

// `key` alone in every configuration that `wanted` finds, besides the one in force in `base`. One
// that cannot be built or launched is reported and left out.
absl::Status add_configs(Suite& suite, const Workload& workload, const KilnCall& base,
                         const std::string& key, const std::regex& wanted, int device,
                         std::vector<Candidate>& candidates) {
  const CUstream handle = suite.session().stream();
  const Stream stream = suite.stream(handle);
  KILN_ASSIGN_OR_RETURN(const std::vector<Config> configs, base.configs());
  for (const Config& config : configs) {
    const std::string name = key + " " + to_string(config);
    if (!std::regex_search(name, wanted)) continue;
    Candidate one{name, nullptr, 0};
    KILN_ASSIGN_OR_RETURN(one.call, KilnCall::prepare(suite.runtime(), workload, device, key));
    KILN_RETURN_IF_ERROR(one.call->bind_beside(base, stream));
    const auto run = [&]() -> absl::Status {
      KILN_RETURN_IF_ERROR(one.call->build(stream));
      KILN_RETURN_IF_ERROR(one.call->use(suite.runtime(), config));
      KILN_RETURN_IF_ERROR(one.call->call(stream));
      for (std::size_t i = 0; i < base.outputs().size(); ++i) {
        if (!base.outputs()[i]) continue;
        KILN_ASSIGN_OR_RETURN(
            const double difference,
            suite.difference(*one.call->outputs()[i], *base.outputs()[i], handle));
        one.difference = std::max(*one.difference, difference);
      }
      return absl::OkStatus();
    };
    if (const absl::Status status = run(); !status.ok()) {
      std::printf("  %s: %s\n", name.c_str(), message_of(status).c_str());
      continue;
    }
    candidates.push_back(std::move(one));
  }
  return absl::OkStatus();
}

// One workload: a copy of as many bytes, Kiln, and (when asked for) each implementation alone, and
// each configuration of those.
absl::StatusOr<Json> run_one(Suite& suite, const Workload& workload, const Arguments& arguments,
                             const TimerOptions& options) {
  const CUstream handle = suite.session().stream();
  const Stream stream = suite.stream(handle);
  std::vector<Candidate> candidates;
  std::vector<std::string> keys = {""};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(auto call,
                          KilnCall::prepare(suite.runtime(), workload, arguments.device, keys[i]));
    KILN_RETURN_IF_ERROR(call->bind_own(stream));
    KILN_RETURN_IF_ERROR(call->call(stream));
    if (i == 0) {
      KILN_ASSIGN_OR_RETURN(keys, call->implementations());
      if (keys.empty()) keys.emplace_back();
      if (!arguments.all_implementations) keys.resize(1);
    }
    candidates.push_back({i == 0 ? "kiln" : "kiln " + keys[i], std::move(call), std::nullopt});
    if (!arguments.configs) continue;
    const KilnCall& base = *candidates.back().call;
    KILN_ASSIGN_OR_RETURN(const std::regex wanted, regex_of("--configs", *arguments.configs));
    KILN_RETURN_IF_ERROR(
        add_configs(suite, workload, base, keys[i], wanted, arguments.device, candidates));
  }
  KILN_ASSIGN_OR_RETURN(Contender copy,
                        suite.copy_of(static_cast<std::size_t>(workload.roofline.bytes), handle));
  std::vector<Contender> contenders = {std::move(copy)};
  for (const Candidate& one : candidates)
    contenders.push_back(
        {one.name, [made = one.call.get(), stream] { return made->call(stream); }});
  const std::vector<Timing> timings = suite.timer().measure(handle, contenders, options);
  KILN_ASSIGN_OR_RETURN(Json json, json_of(suite.runtime(), workload));
  json["state"] = suite.device_state();
  json["contenders"] = Json::array();
  for (std::size_t i = 0; i < timings.size(); ++i) {
    json["contenders"].push_back(json_of(timings[i]));
    if (i == 0) continue;
    json["contenders"].back()["served_by"] = candidates[i - 1].call->served_by();
    if (candidates[i - 1].difference)
      json["contenders"].back()["difference"] = *candidates[i - 1].difference;
  }
  candidates.clear();
  KILN_RETURN_IF_ERROR(suite.session().synchronize(handle));
  return json;
}

void print_one(const Json& one, double bytes_per_second) {
  const double bytes = one.at("bytes").get<double>();
  std::printf("%s\n", one.at("name").get<std::string>().c_str());
  for (const Json& contender : one.at("contenders")) {
    const std::string name = contender.at("name").get<std::string>();
    if (contender.contains("error")) {
      std::printf("  %-28s %s\n", name.c_str(), contender["error"].get<std::string>().c_str());
      continue;
    }
    const Json& us = contender.at("us");
    const double median = us.at("median").get<double>();
    std::printf("  %-28s %9.2f us (%.2f-%.2f) %6.3f TB/s, %4.0f %% of the copy rate  %s%s\n",
                name.c_str(), median, us.at("p10").get<double>(), us.at("p90").get<double>(),
                bytes / median * 1e-6, 100 * bytes / (median * 1e-6) / bytes_per_second,
                contender.value("served_by", "").c_str(),
                contender.at("clock") == "cupti" ? "" : " (timed by events)");
    if (contender.value("difference", 0.0) > 0)
      std::printf("    differs by up to %.1e\n", contender["difference"].get<double>());
  }
  std::fflush(stdout);
}

absl::Status write(const std::string& file, const Json& json) {
  std::ofstream out(file);
  out << internal::dump(json, 1) << '\n';
  out.flush();
  if (!out)
    return absl::InvalidArgumentError("--json: must be a file that can be written: got " + file);
  return absl::OkStatus();
}

absl::Status run(const Arguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const std::regex filter, regex_of("--filter", arguments.filter));
  if (arguments.configs) KILN_RETURN_IF_ERROR(regex_of("--configs", *arguments.configs).status());
  {  // What is wrong with the arguments is said before a device is asked for.
    Runtime runtime(RuntimeOptions::from_environment());
    KILN_RETURN_IF_ERROR(chosen_workloads(runtime, arguments, filter).status());
  }
  KILN_ASSIGN_OR_RETURN(const auto suite,
                        Suite::open({.device = arguments.device, .cupti = arguments.cupti}));
  KILN_ASSIGN_OR_RETURN(const std::vector<Workload> workloads,
                        chosen_workloads(suite->runtime(), arguments, filter));
  TimerOptions options;
  options.cold_l2 = !arguments.warm_l2;
  options.graph = !arguments.no_graph;
  options.measure_ms = arguments.measure_ms;
  Json json;
  json["format"] = "kiln-bench";
  json["version"] = 1;
  json["date"] = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  json["command"] = arguments.command;
  json["commit"] = arguments.commit;
  json["machine"] = suite->machine();
  json["method"] = json_of(options, suite->session());
  std::printf("%s, %s\n", suite->session().name().c_str(),
              json["machine"]["cupti"].get<std::string>().c_str());
  KILN_ASSIGN_OR_RETURN(json["floor"], suite->floor(options));
  const double rate = json["floor"]["bytes_per_second"].get<double>();
  std::printf("copy rate %.3f TB/s, an empty kernel %.2f us\n", rate * 1e-12,
              json["floor"]["empty_kernel_us"]["median"].get<double>());
  json["workloads"] = Json::array();
  for (const Workload& workload : workloads) {
    absl::StatusOr<Json> one = run_one(*suite, workload, arguments, options);
    if (!one.ok()) {
      std::fprintf(stderr, "gpu_bench: %s: %s\n", workload.name.c_str(),
                   message_of(one.status()).c_str());
      if (absl::IsAborted(one.status())) return one.status();
      continue;
    }
    print_one(*one, rate);
    json["workloads"].push_back(*std::move(one));
    if (!arguments.json.empty()) KILN_RETURN_IF_ERROR(write(arguments.json, json));
  }
  if (json["workloads"].empty()) return absl::FailedPreconditionError("no workload could be timed");
  return absl::OkStatus();
}

int main_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 0; i < argc; ++i) arguments.command += (i > 0 ? " " : "") + std::string(argv[i]);
  CLI::App app("Times Kiln's kernels on a device, over the families' perf workloads.", "gpu_bench");
  app.add_option("--family", arguments.family, "only this family's (norm, gemm, ...)");
  app.add_option("--filter", arguments.filter, "only workloads whose name this expression finds");
  app.add_option("--json", arguments.json, "write the results here");
  app.add_option("--device", arguments.device, "its index");
  app.add_option("--cupti", arguments.cupti, "the profiler's library; looked for without it");
  app.add_option("--commit", arguments.commit, "what was built, for the results");
  app.add_option("--measure-ms", arguments.measure_ms, "of each contender")
      ->check(CLI::PositiveNumber);
  app.add_flag("--list,--workloads", arguments.list, "print the workloads and end");
  app.add_flag("--implementations", arguments.all_implementations,
               "also every implementation that could serve, each alone");
  app.add_option("--configs", arguments.configs,
                 "also the other configurations that tuning would try of those, where this "
                 "expression finds \"implementation name=value ...\"; . finds all");
  app.add_flag("--warm-l2", arguments.warm_l2, "leave the L2 as the call before left it");
  app.add_flag("--no-graph", arguments.no_graph, "leave out the replayed graph");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    (void)app.exit(e);
    return kUsage;
  }
  const absl::Status status = arguments.list ? list(arguments) : run(arguments);
  return status.ok() ? 0 : fail(status);
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  try {
    return kiln::bench::main_of(argc, argv);
  } catch (const std::exception& e) {  // out of memory, most likely
    std::fprintf(stderr, "gpu_bench: %s\n", e.what());
    return 3;
  }
}
