#include "cli/bench_programs.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <regex>
#include <set>
#include <unistd.h>

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

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
       {},
       /*has_deadline=*/false,
       /*unless=*/nullptr,
       /*needs=*/"host_path"},
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

}  // namespace

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

absl::Status check_built(const std::vector<BenchProgram>& chosen, const fs::path& folder) {
  std::set<std::string> missing;
  const auto want = [&](const std::string& file) {
    if (::access((folder / file).c_str(), X_OK) != 0) missing.insert(file);
  };
  for (const BenchProgram& one : chosen) {
    want(one.name);
    if (one.needs != nullptr) want(one.needs);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the benchmark programs must be beside kiln, in %s: got no %s; build them (ninja -C %s "
      "benchmarks), or leave them out with --filter",
      folder.string(), absl::StrJoin(missing, ", "), folder.parent_path().string()));
}

}  // namespace kiln::cli
