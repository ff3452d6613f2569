// A small service on Kiln, and what its users feel when kernels must be built.
//
//   kiln_serving [--device cpu|best] [--requests N] [--rate PER_SECOND] [--workers N] [--kiln FILE]
//                [--plot FILE.svg] [--json FILE]
// runs the service under the same load in five states, each in a process of its own:
//   cold, block    nothing is built, a call waits for its kernel
//   cold, async    nothing is built, another kernel serves meanwhile where there is one
//   cold, prefetch nothing is built, all kernels are built before the service is ready
//   warm, disk     the first one's cache
//   pack           what the first one recorded, warmed into a pack; nothing may compile
// The circle from the recorded calls to the pack is the one of docs/serving.md, with the `kiln`
// command.
#include "load.h"
#include "plot.h"
#include "service.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace serving {
namespace {

struct Arguments {
  std::string device = "cpu", kiln, plot, json, serve_into;
  int workers = 4;
  bool prefetch = false;
  LoadOptions load;
};

// Hidden sizes of the "models" that are served: most short, where each has a kernel of its own on
// every backend, and some long.
const std::vector<std::int64_t> kWidths = {8,  12, 16, 20, 24, 28,  32,  36,  40,  44,
                                           48, 52, 56, 60, 64, 128, 256, 512, 768, 1024};

int fail(const std::string& why) {
  std::fprintf(stderr, "kiln_serving: %s\n", why.c_str());
  return 1;
}

// One state: the service and its load in this process. Latencies go to `serve_into`.
int serve(const Arguments& arguments) {
  const absl::StatusOr<kiln::Device> device = kiln::parse_device(arguments.device);
  if (!device.ok()) return fail(kiln::message_of(device.status()));
  const ServiceOptions options{.device = *device,
                               .workers = arguments.workers,
                               .widths = kWidths,
                               .prefetch = arguments.prefetch};
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<std::unique_ptr<Service>> service = Service::start(options);
  if (!service.ok()) return fail(kiln::message_of(service.status()));
  const std::chrono::duration<double> ready = Clock::now() - start;
  const LoadResult result = run_load(**service, options, arguments.load);
  if (result.failed > 0) return fail(result.first_error);
  const kiln::RuntimeStats stats = kiln::Runtime::instance().stats();
  std::ofstream out(arguments.serve_into);
  out << ready.count() << ' ' << result.refused << ' ' << stats.compilations << ' '
      << stats.stand_ins << '\n';
  for (double latency : result.latencies_ms) out << latency << '\n';
  return out.flush() ? 0 : fail("cannot write " + arguments.serve_into);
}

using Environment = std::vector<std::pair<std::string, std::string>>;

// Runs a program to its end with variables set, and none of our own KILN_ ones but the places of
// files. Its standard output is returned where `output` is not null.
bool run(const std::vector<std::string>& words, const Environment& variables,
         std::string* output = nullptr) {
  std::vector<std::string> settings;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string setting = *at;
    const bool is_place = setting.starts_with("KILN_NVRTC=") || setting.starts_with("KILN_CXX=") ||
                          setting.starts_with("KILN_COMPILE_WORKER=") ||
                          setting.starts_with("KILN_BACKEND_PATH=");
    if (!setting.starts_with("KILN_") || is_place) settings.push_back(setting);
  }
  for (const auto& [name, value] : variables) settings.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& setting : settings) envp.push_back(const_cast<char*>(setting.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  int ends[2] = {-1, -1};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output != nullptr) {
    if (::pipe(ends) != 0) return false;
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
  }
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (output != nullptr) {
    ::close(ends[1]);
    char buffer[4096];
    ssize_t count = 0;
    while (error == 0 && (count = ::read(ends[0], buffer, sizeof buffer)) > 0)
      output->append(buffer, static_cast<std::size_t>(count));
    ::close(ends[0]);
  }
  int status = 0;
  if (error != 0 || ::waitpid(child, &status, 0) != child || status != 0) {
    fail(words[0] + " " + (words.size() > 1 ? words[1] : "") + " did not succeed" +
         (error != 0 ? ": " + std::string(std::strerror(error)) : ""));
    return false;
  }
  return true;
}

struct State {
  std::string name;
  double ready_s = 0;
  int refused = 0;
  long compilations = 0, stand_ins = 0;
  std::vector<double> sorted_ms;
};

// The five states. Files lie in one folder.
class Comparison {
 public:
  Comparison(Arguments arguments, std::string self, std::string folder)
      : arguments_(std::move(arguments)), self_(std::move(self)), folder_(std::move(folder)) {}

  int run_all() {
    const std::string cold = folder_ + "/cold", calls = folder_ + "/calls.jsonl";
    if (!measure("cold, block", {{"KILN_CACHE_DIR", cold}, {"KILN_RECORD_CALLS", calls}})) return 1;
    if (!measure("cold, async",
                 {{"KILN_CACHE_DIR", folder_ + "/async"}, {"KILN_COMPILE", "async"}}))
      return 1;
    if (!measure("cold, prefetch", {{"KILN_CACHE_DIR", folder_ + "/prefetch"}}, true)) return 1;
    if (!measure("warm, disk", {{"KILN_CACHE_DIR", cold}})) return 1;
    const std::string pack = folder_ + "/kernels.kpack";
    const std::string trusted = make_pack(calls, pack);
    if (trusted.empty()) return 1;
    if (!measure("pack", {{"KILN_CACHE_DIR", folder_ + "/serving"},
                          {"KILN_CACHE_LAYERS", pack},
                          {"KILN_TRUSTED_KEYS", trusted},
                          {"KILN_COMPILE", "forbid"}}))
      return 1;
    print();
    if (!arguments_.plot.empty() && !write_plot()) return fail("cannot write " + arguments_.plot);
    if (!arguments_.json.empty() && !write_json()) return fail("cannot write " + arguments_.json);
    return 0;
  }

 private:
  bool measure(const std::string& name, const Environment& variables, bool prefetch = false) {
    const std::string file = folder_ + "/latencies";
    std::fprintf(stderr, "%s...\n", name.c_str());
    std::vector<std::string> words = {self_,
                                      "--serve-into",
                                      file,
                                      "--device",
                                      arguments_.device,
                                      "--workers",
                                      std::to_string(arguments_.workers),
                                      "--requests",
                                      std::to_string(arguments_.load.requests),
                                      "--rate",
                                      std::to_string(arguments_.load.per_second)};
    if (prefetch) words.push_back("--prefetch");
    if (!run(words, variables)) return false;
    State state{.name = name};
    std::ifstream in(file);
    in >> state.ready_s >> state.refused >> state.compilations >> state.stand_ins;
    for (double latency = 0; in >> latency;) state.sorted_ms.push_back(latency);
    std::sort(state.sorted_ms.begin(), state.sorted_ms.end());
    states_.push_back(std::move(state));
    return true;
  }

  // What a build machine does with the recorded calls. The public key that the pack is signed with;
  // empty: it did not succeed.
  std::string make_pack(const std::string& calls, const std::string& pack) {
    const Environment build = {{"KILN_CACHE_DIR", folder_ + "/build"}};
    const std::string key = folder_ + "/signing.key";
    std::string said, trusted;
    if (!run({arguments_.kiln, "cache", "keygen", key}, build, &said)) return "";
    const std::size_t at = said.find("KILN_TRUSTED_KEYS=");
    if (at != std::string::npos) std::istringstream(said.substr(at + 18)) >> trusted;
    std::string report;  // is of no interest here
    if (!run({arguments_.kiln, "warm", "--calls", calls}, build, &report)) return "";
    if (!run({arguments_.kiln, "cache", "export", pack, "--sign-key", key}, build, &report))
      return "";
    return trusted;
  }

  void print() const {
    std::printf("%-15s %9s %9s %9s %9s %9s %9s %9s %9s\n", "latency in ms", "p50", "p90", "p99",
                "p99.9", "max", "ready (s)", "compiled", "stand-ins");
    for (const State& state : states_) {
      std::printf("%-15s", state.name.c_str());
      for (double p : {0.5, 0.9, 0.99, 0.999, 1.0})
        std::printf(" %9.2f", percentile(state.sorted_ms, p));
      std::printf(
          " %9.2f %9ld %9ld%s\n", state.ready_s, state.compilations, state.stand_ins,
          state.refused > 0 ? ("  " + std::to_string(state.refused) + " refused").c_str() : "");
    }
  }

  bool write_plot() const {
    std::vector<Series> series;
    for (const State& state : states_) series.push_back({state.name, state.sorted_ms});
    std::ofstream out(arguments_.plot);
    out << latency_plot("Latency of " + std::to_string(arguments_.load.requests) + " requests on " +
                            arguments_.device,
                        series);
    return static_cast<bool>(out.flush());
  }

  // As a benchmark's results (docs/benchmarks.md), in microseconds.
  bool write_json() const {
    std::ofstream out(arguments_.json);
    out << "{\"workloads\": [";
    for (const State& state : states_) {
      const auto us = [&](double p) {
        return std::to_string(1e3 * percentile(state.sorted_ms, p));
      };
      out << (&state == &states_[0] ? "\n" : ",\n") << R"( {"name": "serving: )" << state.name
          << ", " << arguments_.device
          << R"(", "family": "serving", "contenders": [{"name": "kiln",)"
          << R"( "clock": "wall", "us": {"median": )" << us(0.5) << R"(, "p10": )" << us(0.1)
          << R"(, "p90": )" << us(0.9) << R"(, "count": )" << state.sorted_ms.size()
          << R"(}, "percentiles_us": [)";
      for (double p : {0.5, 0.9, 0.99, 0.999, 1.0})
        out << (p > 0.5 ? ", [" : "[") << p << ", " << us(p) << "]";
      out << R"(], "curve_us": [)";
      const double nines = std::log10(static_cast<double>(state.sorted_ms.size()));
      for (int step = 0; step <= 100; ++step) {
        const double p = 1 - std::pow(10, -nines * step / 100);
        out << (step > 0 ? ", [" : "[") << std::setprecision(9) << p << ", " << us(p) << "]";
      }
      out << R"(], "beside": {"ready, s": )" << state.ready_s << R"(, "compiled": )"
          << state.compilations << R"(, "stand-ins": )" << state.stand_ins << R"(, "refused": )"
          << state.refused << "}}]}";
    }
    out << "\n]}\n";
    return static_cast<bool>(out.flush());
  }

  const Arguments arguments_;
  const std::string self_, folder_;
  std::vector<State> states_;
};

bool parse(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--prefetch") {
      out.prefetch = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (name == "--device")
      out.device = value;
    else if (name == "--kiln")
      out.kiln = value;
    else if (name == "--plot")
      out.plot = value;
    else if (name == "--json")
      out.json = value;
    else if (name == "--serve-into")
      out.serve_into = value;
    else if (name == "--workers")
      out.workers = std::atoi(value.c_str());
    else if (name == "--requests")
      out.load.requests = std::atoi(value.c_str());
    else if (name == "--rate")
      out.load.per_second = std::atof(value.c_str());
    else
      return false;
  }
  return out.workers > 0 && out.load.requests > 0 && out.load.per_second > 0;
}

// cuda:0 where there is one.
std::string best_device() {
  const auto support = kiln::Runtime::instance().device_support(kiln::DeviceType::cuda());
  if (!support.ok()) return "cpu";
  const absl::StatusOr<int> count = (*support)->device_count();
  return count.ok() && *count > 0 ? "cuda:0" : "cpu";
}

int compare(Arguments arguments) {
  if (arguments.device == "best") arguments.device = best_device();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  if (arguments.kiln.empty())
    arguments.kiln = std::filesystem::path(self).replace_filename("kiln").string();
  std::string folder = (std::filesystem::temp_directory_path() / "kiln_serving.XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return fail("cannot make a folder: " + folder);
  const int result = Comparison(arguments, self, folder).run_all();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}

}  // namespace
}  // namespace serving

int main(int argc, char** argv) {
  serving::Arguments arguments;
  if (!serving::parse(argc, argv, arguments)) {
    serving::fail(
        "want --device D (or best), --requests N, --rate PER_SECOND, --workers N, --kiln FILE, "
        "--plot FILE, --json FILE");
    return 2;
  }
  return arguments.serve_into.empty() ? serving::compare(arguments) : serving::serve(arguments);
}
