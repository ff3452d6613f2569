// first_call [--json FILE] [ROUNDS]: what a first call's build costs a fresh process, beside a
// process that compiles the same source with bare NVRTC, and what the next process pays. Whole
// processes, by the wall clock, in turn: `kiln warm` with an empty cache, bare NVRTC, `kiln warm`
// with the cache as it was left. No device is needed, so loading is left out.
#include "base/file_system.h"
#include "bench/jit/whole_process.h"
#include "cache/artifact.h"
#include "cli/rebuild.h"
#include "jit/nvrtc_library.h"

#include <dlfcn.h>
#include <sstream>

namespace {

using namespace kiln;
using bench::check, bench::must, bench::run_us;
namespace fs = std::filesystem;

constexpr const char* kCall =
    R"({"op":"LayerNormFwdOp","params":{"normalized_shape":[4096]},)"
    R"("inputs":{"x":{"dtype":"float16","shape":[8192,4096]},)"
    R"("weight":{"dtype":"float16","shape":[4096]},"bias":{"dtype":"float16","shape":[4096]}}})";

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

fs::path artifact_in(const fs::path& cache) {
  for (const auto& entry : fs::recursive_directory_iterator(cache)) {
    if (entry.is_regular_file() && cache::parse_artifact(contents(entry.path())).ok())
      return entry.path();
  }
  check(absl::InternalError("kiln warm must leave an artifact in its cache: found none"));
  return {};
}

void measure(int rounds, const std::string& json_file) {
  const std::string kiln = bench::kiln_beside();
  const jit::NvrtcLibrary nvrtc = must(jit::load_nvrtc({}));
  const fs::path folder = bench::new_folder();
  const std::vector<std::string> warm = {kiln, "warm", kCall, "--arch", "90"};
  std::vector<double> cold, alone, next;
  for (int round = 0; round < rounds; ++round) {
    const fs::path cache = folder / std::to_string(round);
    cold.push_back(run_us(warm, cache));
    alone.push_back(run_us({bench::self().string(), "--bare", artifact_in(cache).string(),
                            nvrtc.path, nvrtc.include_dir},
                           cache));
    next.push_back(run_us(warm, cache));
  }
  fs::remove_all(folder);
  const std::string name = "LayerNormFwdOp 8192x4096 float16 +weight +bias, sm_90a, no load";
  bench::write_workloads(
      {bench::workload(
           "first call", name,
           {bench::contender("kiln", "wall", cold), bench::contender("nvrtc", "wall", alone)}),
       bench::workload("warm start", name, {bench::contender("kiln", "wall", next)})},
      json_file);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[0] == "--bare") return bare(words[1], words[2].c_str(), words[3]);
  const auto arguments = bench::rounds_arguments(words, 7);
  measure(arguments.rounds, arguments.json);
  return 0;
}
