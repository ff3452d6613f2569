#ifndef KILN_CLI_BENCH_PROGRAMS_H_
#define KILN_CLI_BENCH_PROGRAMS_H_

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <vector>

// The benchmark programs that are built beside `kiln`.
namespace kiln::cli {

struct BenchProgram {
  const char* name;
  const char* family;
  const char* means;
  bool is_google_benchmark = false;
  std::vector<std::string> quick, full;  // arguments
  bool has_deadline = false;             // takes --deadline SECONDS
  const char* unless = nullptr;          // not needed where this one has run
  const char* needs = nullptr;           // a program beside it, which it runs
};

// Those whose names `filter` finds; at least one.
absl::StatusOr<std::vector<BenchProgram>> chosen_programs(const std::string& filter);

// All that are to run, and what they need, must be in `folder` before the first one starts.
absl::Status check_built(const std::vector<BenchProgram>& chosen,
                         const std::filesystem::path& folder);

}  // namespace kiln::cli

#endif  // KILN_CLI_BENCH_PROGRAMS_H_
