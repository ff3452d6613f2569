#include <kiln/host_compiler.h>

#include "base/hash128.h"
#include "jit/elf_symbols.h"
#include "jit/hermetic.h"
#include "jit/process.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gnu/libc-version.h>
#include <iterator>
#include <mutex>
#include <optional>
#include <stdlib.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace kiln {
inline namespace v1 {
namespace {

namespace fs = std::filesystem;

// What every compilation is given. Part of the compiler's id, so that a change here changes every
// key.
const std::vector<std::string>& fixed_options() {
  static const std::vector<std::string> options = {
      "-std=c++20", "-O3", "-fPIC", "-shared", "-pipe",
      "-fno-math-errno",     // lets loops with sqrt and the like be vectorised
      "-ffp-contract=fast",  // fused multiply-adds: the kernels' results are compared within a
                             // tolerance
      "-fno-semantic-interposition", "-Wall", "-Wno-unknown-pragmas", "-fdiagnostics-color=never",
      "-Wl,-z,noexecstack",
      "-Wl,-z,defs"};  // an undefined function is an error now and not at dlopen
  return options;
}

// A folder under `parent` that only this user can see, removed with all in it by the destructor.
class TempFolder {
 public:
  static absl::StatusOr<TempFolder> make(const std::string& parent) {
    std::string pattern = parent + "/kiln-cxx-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      const int error = errno;
      return absl::FailedPreconditionError(
          absl::StrFormat("host compiler: must be able to make a folder under '%s': %s (errno %d)",
                          parent, strerrordesc_np(error), error));
    }
    return TempFolder(std::move(pattern));
  }
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, std::string())) {}
  TempFolder& operator=(TempFolder&&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

absl::Status write_file(const fs::path& path, std::string_view bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file && !error) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "host compiler: must be able to write %d bytes to %s", bytes.size(), path.string()));
}

absl::StatusOr<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file && !bytes.empty()) return bytes;
  return absl::UnavailableError(
      absl::StrFormat("host compiler: must be a file with content: %s", path.string()));
}

// The file to run for `name`; nullopt when no folder of `search_path` has it.
std::optional<std::string> find_program(const std::string& name, std::string_view search_path) {
  const auto runs = [](const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != name.npos) return runs(name) ? std::optional(name) : std::nullopt;
  while (!search_path.empty()) {
    const std::size_t colon = search_path.find(':');
    const std::string path = std::string(search_path.substr(0, colon)) + "/" + name;
    if (runs(path)) return path;
    search_path.remove_prefix(colon == search_path.npos ? search_path.size() : colon + 1);
  }
  return std::nullopt;
}

// A plain word for -march, and one that means the same everywhere.
absl::Status check_target(std::string_view target) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("-_.+").find(c) != std::string_view::npos;
  };
  if (!target.empty() && target != "native" && std::all_of(target.begin(), target.end(), plain))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "host compiler: the target must name one kind of processor, such as x86-64-v3: got '%s'",
      target));
}

std::vector<std::string> arguments_for(const CompileRequest& request, const std::string& folder) {
  std::vector<std::string> arguments = {"c++"};
  arguments.insert(arguments.end(), fixed_options().begin(), fixed_options().end());
  arguments.push_back("-march=" + request.target);
  arguments.insert(arguments.end(), {"-I.", "-ffile-prefix-map=" + folder + "=.",
                                     "-frandom-seed=" + request.source_name});
  for (const std::string& define : request.defines) arguments.push_back("-D" + define);
  arguments.insert(arguments.end(), request.options.begin(), request.options.end());
  arguments.insert(arguments.end(), {"-x", "c++", request.source_name, "-o", "../image.so"});
  return arguments;
}

class HostCompiler final : public Compiler {
 public:
  explicit HostCompiler(HostCompilerOptions options) : options_(std::move(options)) {}

  absl::StatusOr<CompilerId> id() const override {
    const std::lock_guard lock(mutex_);
    if (!id_) {
      KILN_ASSIGN_OR_RETURN(id_, find_id());
    }
    return *id_;
  }

  bool makes_host_code() const override { return true; }

  absl::StatusOr<CompileResult> compile(const CompileRequest& request) const override {
    KILN_RETURN_IF_ERROR(jit::check_hermetic(request));
    KILN_RETURN_IF_ERROR(check_target(request.target));
    KILN_ASSIGN_OR_RETURN(const TempFolder folder, TempFolder::make(options_.temp_dir));
    const std::string tree = folder.path() + "/src";
    KILN_RETURN_IF_ERROR(write_file(tree + "/" + request.source_name, request.source));
    for (const auto& [name, contents] : request.headers) {
      KILN_RETURN_IF_ERROR(write_file(tree + "/" + name, contents));
    }
    KILN_ASSIGN_OR_RETURN(jit::ProcessResult run,
                          run_compiler(arguments_for(request, tree), tree, folder.path()));
    if (run.exit_status != 0) {
      return with_kind(
          absl::InvalidArgumentError(absl::StrFormat(
              "compiling %s for %s: the compiler must succeed: it ended with status %d\n%s",
              request.source_name, request.target, run.exit_status, run.output)),
          ErrorKind::compile_error);
    }
    CompileResult result{.kind = "host_object", .log = std::move(run.output)};
    KILN_ASSIGN_OR_RETURN(result.image, read_file(folder.path() + "/image.so"));
    KILN_RETURN_IF_ERROR(jit::check_kernels(request.source_name, request.kernels,
                                            jit::defined_functions(result.image)));
    for (const std::string& kernel : request.kernels) result.kernels.push_back({.name = kernel});
    return result;
  }

 private:
  absl::StatusOr<std::string> program() const {
    if (auto found = find_program(options_.compiler, options_.search_path))
      return *std::move(found);
    return absl::FailedPreconditionError(
        absl::StrFormat("host compiler: must be an executable: found no '%s' (searched %s); "
                        "install g++ or set KILN_CXX to a C++20 "
                        "compiler",
                        options_.compiler, options_.search_path));
  }

  absl::StatusOr<jit::ProcessResult> run_compiler(std::vector<std::string> arguments,
                                                  const std::string& folder,
                                                  const std::string& temp) const {
    KILN_ASSIGN_OR_RETURN(std::string path, program());
    arguments.front() = path;
    jit::ProcessOptions process{
        .program = path,
        .arguments = std::move(arguments),
        .environment = {"PATH=" + options_.search_path, "TMPDIR=" + temp, "LC_ALL=C"},
        .folder = folder,
        .deadline = absl::Now() + absl::FromChrono(options_.timeout)};
    absl::StatusOr<jit::ProcessResult> result = jit::run_process(process);
    if (!result.ok()) return annotate(result.status(), "host compiler");
    return result;
  }

  // Version and bytes of the driver program, its default machine, and the options that it is always
  // given.
  absl::StatusOr<CompilerId> find_id() const {
    KILN_ASSIGN_OR_RETURN(const std::string path, program());
    KILN_ASSIGN_OR_RETURN(const std::string bytes, read_file(path));
    std::string facts;
    std::string version;
    for (const char* question : {"--version", "-dumpmachine"}) {
      KILN_ASSIGN_OR_RETURN(const jit::ProcessResult answer,
                            run_compiler({"c++", question}, "/", options_.temp_dir));
      if (answer.exit_status != 0 || answer.output.empty()) {
        return absl::FailedPreconditionError(
            absl::StrFormat("host compiler: %s must answer %s: it ended with status %d: %s", path,
                            question, answer.exit_status, answer.output));
      }
      if (version.empty()) version = answer.output.substr(0, answer.output.find('\n'));
      append_length_prefixed(facts, answer.output);
    }
    append_length_prefixed(facts, bytes);
    for (const std::string& option : fixed_options()) append_length_prefixed(facts, option);
    return CompilerId{.name = "c++",
                      .build = version + " " + to_hex(hash128(facts)).substr(0, 16),
                      .headers = std::string("glibc ") + gnu_get_libc_version()};
  }

  const HostCompilerOptions options_;
  mutable std::mutex mutex_;  // guards all below
  mutable std::optional<CompilerId> id_;
};

}  // namespace

std::unique_ptr<Compiler> make_host_compiler(HostCompilerOptions options) {
  return std::make_unique<HostCompiler>(std::move(options));
}

}  // namespace v1
}  // namespace kiln
