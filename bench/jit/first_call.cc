// first_call [--json FILE] [ROUNDS]: what a first call's build costs a fresh process, beside a
// process that compiles the same source with bare NVRTC, and what the next process pays. Whole
// processes, by the wall clock, in turn: `kiln warm` with an empty cache, bare NVRTC, `kiln warm`
// with the cache as it was left. No device is needed, so loading is left out.
#include <kiln/status.h>

#include "base/file_system.h"
#include "cache/artifact.h"
#include "cli/bench_spread.h"
#include "cli/rebuild.h"
#include "jit/nvrtc_library.h"
#include "jit/process.h"

#include <absl/strings/str_format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace kiln;
namespace fs = std::filesystem;

constexpr const char* kCall =
    R"({"op":"LayerNormFwdOp","params":{"normalized_shape":[4096]},)"
    R"("inputs":{"x":{"dtype":"float16","shape":[8192,4096]},)"
    R"("weight":{"dtype":"float16","shape":[4096]},"bias":{"dtype":"float16","shape":[4096]}}})";

void check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "first_call: %s\n", message_of(status).c_str());
  std::_Exit(3);
}

template <class T>
T must(absl::StatusOr<T> value) {
  check(value.status());
  return *std::move(value);
}

fs::path self() { return fs::read_symlink("/proc/self/exe"); }

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

template <class Function>
Function* symbol(void* library, const char* name) {
  void* const found = ::dlsym(library, name);
  if (found == nullptr) check(absl::NotFoundError(absl::StrFormat("NVRTC has no %s", name)));
  return reinterpret_cast<Function*>(found);
}

// The child: an artifact's request through NVRTC's own functions, with nothing of Kiln's between.
int bare(const std::string& artifact_file, const char* library_path, const std::string& include) {
  const cache::Artifact artifact = must(cache::parse_artifact(contents(artifact_file)));
  const CompileRequest request = cli::request_of(artifact);
  void* const library = ::dlopen(library_path, RTLD_NOW);
  if (library == nullptr) check(absl::NotFoundError(::dlerror()));
  std::string constants;
  for (const std::string& define : request.defines) {
    const std::size_t equals = define.find('=');
    constants += "#define " + define.substr(0, equals) + " " + define.substr(equals + 1) + "\n";
  }
  std::vector<const char*> names = {"./constants"}, texts = {constants.c_str()};
  for (const auto& [name, text] : request.headers) {
    names.push_back(name.c_str());
    texts.push_back(text.c_str());
  }
  const std::string arch = "--gpu-architecture=" + request.target;
  const std::string path = "--include-path=" + include;
  std::vector<const char*> options = {"--std=c++20", "--pre-include=./constants",
                                      "--no-cache",  "--no-source-include",
                                      arch.c_str(),  path.c_str()};
  for (const std::string& option : request.options) options.push_back(option.c_str());
  nvrtcProgram program = nullptr;
  std::size_t size = 0;
  check(jit::nvrtc_status(symbol<decltype(nvrtcCreateProgram)>(library, "nvrtcCreateProgram")(
                              &program, request.source.c_str(), request.source_name.c_str(),
                              static_cast<int>(names.size()), texts.data(), names.data()),
                          "nvrtcCreateProgram"));
  check(jit::nvrtc_status(symbol<decltype(nvrtcCompileProgram)>(library, "nvrtcCompileProgram")(
                              program, static_cast<int>(options.size()), options.data()),
                          "nvrtcCompileProgram"));
  check(jit::nvrtc_status(
      symbol<decltype(nvrtcGetCUBINSize)>(library, "nvrtcGetCUBINSize")(program, &size),
      "nvrtcGetCUBINSize"));
  std::string image(size, '\0');
  check(jit::nvrtc_status(
      symbol<decltype(nvrtcGetCUBIN)>(library, "nvrtcGetCUBIN")(program, image.data()),
      "nvrtcGetCUBIN"));
  return 0;
}

// Our environment with a cache of its own and no other of Kiln's settings for it.
std::vector<std::string> environment(const fs::path& cache) {
  std::vector<std::string> words = {"KILN_CACHE_DIR=" + cache.string()};
  for (char** word = environ; *word != nullptr; ++word) {
    if (!std::string_view(*word).starts_with("KILN_CACHE")) words.emplace_back(*word);
  }
  return words;
}

// Microseconds from the start of a process to its end.
double run_us(const std::vector<std::string>& words, const fs::path& cache) {
  const auto start = std::chrono::steady_clock::now();
  const jit::ProcessResult result = must(jit::run_process(
      {.program = words[0], .arguments = words, .environment = environment(cache)}));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (result.exit_status != 0)
    check(absl::InternalError(absl::StrFormat("%s: must succeed: ended with %d: %s", words[0],
                                              result.exit_status, result.output)));
  return took.count();
}

fs::path artifact_in(const fs::path& cache) {
  for (const auto& entry : fs::recursive_directory_iterator(cache)) {
    if (entry.is_regular_file() && cache::parse_artifact(contents(entry.path())).ok())
      return entry.path();
  }
  check(absl::InternalError("kiln warm must leave an artifact in its cache: found none"));
  return {};
}

void measure(int rounds, const std::string& json_file) {
  const std::string kiln = (self().parent_path() / "kiln").string();
  if (!fs::exists(kiln))
    check(absl::NotFoundError("kiln must be built beside this program: got no " + kiln));
  const jit::NvrtcLibrary nvrtc = must(jit::load_nvrtc({}));
  std::string folder = (fs::temp_directory_path() / "kiln-first-call-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    check(absl::InternalError("a temporary folder must be makeable: got " + folder));
  const std::vector<std::string> warm = {kiln, "warm", kCall, "--arch", "90"};
  std::vector<double> cold, alone, next;
  for (int round = 0; round < rounds; ++round) {
    const fs::path cache = fs::path(folder) / std::to_string(round);
    cold.push_back(run_us(warm, cache));
    alone.push_back(run_us(
        {self().string(), "--bare", artifact_in(cache).string(), nvrtc.path, nvrtc.include_dir},
        cache));
    next.push_back(run_us(warm, cache));
  }
  fs::remove_all(folder);
  const std::string name = "LayerNormFwdOp 8192x4096 float16 +weight +bias, sm_90a, no load";
  const auto workload = [&](const char* family, std::vector<bench::Json> contenders) {
    return bench::Json{{"name", absl::StrFormat("%s: %s", family, name)},
                       {"family", family},
                       {"contenders", std::move(contenders)}};
  };
  const bench::Json json = {workload("first call", {bench::contender("kiln", "wall", cold),
                                                    bench::contender("nvrtc", "wall", alone)}),
                            workload("warm start", {bench::contender("kiln", "wall", next)})};
  std::printf("%s\n", json.dump(1).c_str());
  if (json_file.empty()) return;
  std::ofstream out(json_file);
  out << bench::Json{{"workloads", json}}.dump(1) << '\n';
  out.flush();
  if (!out)
    check(
        absl::InvalidArgumentError("--json: must be a file that can be written: got " + json_file));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[0] == "--bare") return bare(words[1], words[2].c_str(), words[3]);
  std::string json;
  if (words.size() >= 2 && words[0] == "--json") {
    json = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  const int rounds = words.empty() ? 7 : std::atoi(words[0].c_str());
  if (rounds < 1 || words.size() > 1) {
    std::fprintf(
        stderr, "first_call: ROUNDS must be 1 or more: usage: first_call [--json FILE] [ROUNDS]\n");
    return 2;
  }
  measure(rounds, json);
  return 0;
}
