// warm_scaling [--json FILE] [PROGRAMS [WIDTH...]]: how compiling many programs scales over compile
// workers, beside what as many independent NVRTC processes reach on the same sources in the same
// run. Widths are 1, 2, 4, ... up to the usable cores unless given. Both sides begin with nothing
// running; rounds are interleaved, and the median of three is taken.
#include <kiln/status.h>

#include "bench/jit/whole_process.h"
#include "cli/bench_spread.h"
#include "jit/nvrtc_compiler.h"
#include "jit/process.h"
#include "jit/worker_compiler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace kiln;
using namespace kiln::jit;

constexpr const char* kLean =
    "extern \"C\" __global__ void rows(const float* x, float* y, int n) {\n"
    "  __shared__ float part[32];\n"
    "  float sum = 0;\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * (long)n + i] * "
    "SCALE;\n"
    "  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);\n"
    "  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;\n"
    "  __syncthreads();\n"
    "  float all = 0;\n"
    "  for (int w = 0; w < (int)blockDim.x / 32; ++w) all += part[w];\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
    "    y[blockIdx.x * (long)n + i] = x[blockIdx.x * (long)n + i] * rsqrtf(all / n + 1e-5f);\n"
    "}\n";

CompileRequest request(const std::string& kind, int number) {
  const std::string header = kind == "fp16" ? "#include <cuda_fp16.h>\n" : "";
  return {.source_name = "bench/rows.cu",
          .source = header + kLean,
          .headers = {},
          .defines = {"SCALE=" + std::to_string(number + 1)},
          .options = {},
          .kernels = {"rows"},
          .target = "sm_90a"};
}

void check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::_Exit(1);
}

// One of `width` independent processes: every width-th program, in turn.
int run_share(const std::string& kind, int programs, int width, int share) {
  const auto compiler = make_nvrtc_compiler();
  for (int i = share; i < programs; i += width) check(compiler->compile(request(kind, i)).status());
  return 0;
}

template <class Body>
double seconds(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double independent(const std::string& kind, int programs, int width) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> environment;
  for (char** word = environ; *word != nullptr; ++word) environment.emplace_back(*word);
  return seconds([&] {
    std::vector<std::thread> threads;
    for (int share = 0; share < width; ++share) {
      threads.emplace_back([&, share] {
        const auto result =
            run_process({.program = self,
                         .arguments = {self, "--share", kind, std::to_string(programs),
                                       std::to_string(width), std::to_string(share)},
                         .environment = environment});
        check(result.status());
        if (result->exit_status != 0) check(absl::InternalError(result->output));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

double with_workers(const std::string& kind, int programs, int width) {
  return seconds([&] {
    WorkerOptions options{.worker = find_compile_worker(""), .max_workers = width};
    const auto workers = make_worker_compiler(options, make_nvrtc_compiler());
    std::atomic<int> next = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < width; ++t) {
      threads.emplace_back([&] {
        for (int i = next++; i < programs; i = next++)
          check(workers->compile(request(kind, i)).status());
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (workers->stats().in_process > 0)
      check(absl::FailedPreconditionError("no worker could be started"));
  });
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

namespace {

// Microseconds of both sides at one width, as a workload of the results (docs/benchmarks.md).
bench::Json workload(const std::string& kind, int programs, int width, std::vector<double> ours,
                     std::vector<double> theirs) {
  for (std::vector<double>* side : {&ours, &theirs})
    for (double& value : *side) value *= 1e6;
  return {{"name", "warm scaling: " + std::to_string(programs) + " " + kind + " kernels, width " +
                       std::to_string(width)},
          {"family", "warm scaling"},
          {"contenders",
           {bench::contender("kiln", "wall", std::move(ours)),
            bench::contender("nvrtc processes", "wall", std::move(theirs))}}};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 5 && words[0] == "--share") {
    return run_share(words[1], std::atoi(words[2].c_str()), std::atoi(words[3].c_str()),
                     std::atoi(words[4].c_str()));
  }
  const std::string usage = "[--json FILE] [PROGRAMS [WIDTH...]]";
  const std::string json_file = bench::take_json(words, usage);
  bench::Json workloads = bench::Json::array();
  const int programs = words.empty() ? 96 : bench::whole_number("PROGRAMS", words[0], usage);
  std::vector<int> widths;
  for (std::size_t i = 1; i < words.size(); ++i)
    widths.push_back(bench::whole_number("WIDTH", words[i], usage));
  for (int width = 1; words.size() < 2 && width <= usable_cores(); width *= 2)
    widths.push_back(width);
  std::printf("%d programs, %d usable cores; seconds, speed-up over one independent process\n",
              programs, usable_cores());
  std::printf("%-6s %5s %12s %8s %10s %8s %7s\n", "kind", "width", "independent", "speed-up",
              "workers", "speed-up", "ratio");
  for (const std::string kind : {"lean", "fp16"}) {
    double alone = 0;
    for (const int width : widths) {
      std::vector<double> theirs, ours;
      for (int round = 0; round < 3; ++round) {
        theirs.push_back(independent(kind, programs, width));
        ours.push_back(with_workers(kind, programs, width));
      }
      if (alone == 0) alone = median(theirs) * widths.front();
      std::printf("%-6s %5d %12.2f %8.2f %10.2f %8.2f %7.3f\n", kind.c_str(), width, median(theirs),
                  alone / median(theirs), median(ours), alone / median(ours),
                  median(theirs) / median(ours));
      std::fflush(stdout);
      workloads.push_back(workload(kind, programs, width, ours, theirs));
    }
  }
  if (json_file.empty()) return 0;
  std::ofstream out(json_file);
  out << bench::Json{{"workloads", workloads}}.dump(1) << '\n';
  out.flush();
  if (!out)
    check(
        absl::InvalidArgumentError("--json: must be a file that can be written: got " + json_file));
  return 0;
}
