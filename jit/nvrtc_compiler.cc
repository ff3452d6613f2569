#include "jit/nvrtc_compiler.h"

#include "base/hash128.h"
#include "jit/current_folder.h"
#include "jit/elf_symbols.h"
#include "jit/hermetic.h"
#include "jit/ptxas_log.h"
#include "jit/target.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <utility>

namespace kiln::jit {
namespace {

// The constants are a header before the first line of the source, and no -D: NVRTC reads a header
// of its own before that, which a constant named T or N would break. No source can have this name
// (`check_source_name`).
constexpr const char* kConstantsHeader = "./constants";

std::string constants_header(const std::vector<std::string>& defines) {
  std::string text;
  for (const std::string& define : defines) {
    const std::size_t equals = define.find('=');
    text += "#define " + define.substr(0, equals) + " " +
            (equals == define.npos ? "1" : define.substr(equals + 1)) + "\n";
  }
  return text;
}

// What every compilation is given. Part of the compiler's id, so that a change here changes every
// key.
std::vector<std::string> fixed_options(const NvrtcLibrary& library) {
  std::vector<std::string> options = {
      "--std=c++20", std::string("--pre-include=") + kConstantsHeader,
      "--no-source-include",  // a quoted include is otherwise looked up in the current directory
      "--ptxas-options=-v",   // registers and spills, for KernelInfo
  };
  // From 12.9 on NVRTC keeps a cache of its own, which would hide what was really compiled.
  if (library.major * 1000 + library.minor >= 12 * 1000 + 9) options.emplace_back("--no-cache");
  return options;
}

// Owner of a program handle.
class NvrtcProgram {
 public:
  explicit NvrtcProgram(const NvrtcFunctions& call) : call_(call) {}
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;
  ~NvrtcProgram() {
    if (program_ != nullptr) call_.nvrtcDestroyProgram(&program_);
  }

  absl::Status create(const CompileRequest& request) {
    const std::string constants = constants_header(request.defines);
    std::vector<const char*> names = {kConstantsHeader};
    std::vector<const char*> contents = {constants.c_str()};
    for (const auto& [name, text] : request.headers) {
      names.push_back(name.c_str());
      contents.push_back(text.c_str());
    }
    return nvrtc_status(
        call_.nvrtcCreateProgram(&program_, request.source.c_str(), request.source_name.c_str(),
                                 static_cast<int>(names.size()), contents.data(), names.data()),
        "nvrtcCreateProgram");
  }

  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return call_.nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  // Up to the first zero byte: NVRTC counts the terminator, and sometimes another.
  std::string log() const {
    const absl::StatusOr<std::string> text =
        fetch(call_.nvrtcGetProgramLogSize, call_.nvrtcGetProgramLog, "log");
    return text.ok() ? std::string(text->c_str()) : std::string();
  }
  absl::StatusOr<std::string> cubin() const {
    return fetch(call_.nvrtcGetCUBINSize, call_.nvrtcGetCUBIN, "cubin");
  }
  absl::StatusOr<std::string> ptx() const {
    return fetch(call_.nvrtcGetPTXSize, call_.nvrtcGetPTX, "ptx");
  }

 private:
  template <typename Size, typename Get>
  absl::StatusOr<std::string> fetch(Size size_of_it, Get get, std::string_view what) const {
    std::size_t size = 0;
    KILN_RETURN_IF_ERROR(nvrtc_status(size_of_it(program_, &size), what));
    std::string bytes(size, '\0');
    if (size != 0) KILN_RETURN_IF_ERROR(nvrtc_status(get(program_, bytes.data()), what));
    return bytes;
  }

  const NvrtcFunctions& call_;
  nvrtcProgram program_ = nullptr;
};

// The arch number in "sm_90a" or "compute_90".
absl::Status check_arch(const NvrtcLibrary& library, std::string_view target) {
  std::string_view digits = target;
  if (digits.starts_with("sm_")) {
    digits.remove_prefix(3);
  } else if (digits.starts_with("compute_")) {
    digits.remove_prefix(8);
  }
  int arch = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), arch);
  const std::string_view suffix(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
  const bool form = digits.size() != target.size() && error == std::errc() &&
                    (suffix.empty() || suffix == "a" || suffix == "f");
  if (form && std::find(library.archs.begin(), library.archs.end(), arch) != library.archs.end()) {
    return absl::OkStatus();
  }
  const std::string toolkit = first_toolkit_of(arch);
  return absl::InvalidArgumentError(absl::StrFormat(
      "NVRTC %d.%d: the target must be an arch that it knows, as sm_ARCH, sm_ARCHa or compute_ARCH "
      "with ARCH one of %s: got '%s'%s",
      library.major, library.minor, absl::StrJoin(library.archs, ", "), target,
      !form ? ""
      : toolkit.empty()
          ? "; no toolkit that this Kiln knows compiles for it: a newer one of both may"
          : absl::StrFormat("; CUDA Toolkit %s and newer know it", toolkit)));
}

std::vector<std::string> options_for(const NvrtcLibrary& library, const CompileRequest& request) {
  std::vector<std::string> options = fixed_options(library);
  options.push_back("--gpu-architecture=" + request.target);
  if (!library.include_dir.empty()) options.push_back("--include-path=" + library.include_dir);
  options.insert(options.end(), request.options.begin(), request.options.end());
  return options;
}

// Entry points in PTX: ".visible .entry NAME(".
std::vector<std::string> ptx_entries(std::string_view ptx) {
  constexpr std::string_view kEntry = ".entry ";
  std::vector<std::string> names;
  for (std::size_t at = ptx.find(kEntry); at != ptx.npos; at = ptx.find(kEntry, at)) {
    at += kEntry.size();
    names.emplace_back(ptx.substr(at, ptx.find_first_of("( \n", at) - at));
  }
  return names;
}

absl::Status failure(const CompileRequest& request, nvrtcResult result, const std::string& log) {
  // The front end tells that it got no memory as if the source were at fault.
  if (result == NVRTC_ERROR_COMPILATION &&
      log.find(": catastrophic error: out of memory\n") != log.npos)
    result = NVRTC_ERROR_OUT_OF_MEMORY;
  absl::Status status =
      nvrtc_status(result, "compiling " + request.source_name + " for " + request.target);
  const std::string text = parse_ptxas_log(log).rest;
  absl::Status with_log(status.code(), absl::StrFormat("%s\n%s", message_of(status), text));
  return with_kind(std::move(with_log), error_kind(status));
}

absl::StatusOr<CompileResult> take_result(const NvrtcProgram& program,
                                          const CompileRequest& request) {
  CompileResult result;
  const bool is_ptx = request.target.starts_with("compute_");
  result.kind = is_ptx ? "ptx" : "cubin";
  KILN_ASSIGN_OR_RETURN(result.image, is_ptx ? program.ptx() : program.cubin());
  KILN_RETURN_IF_ERROR(
      check_kernels(request.source_name, request.kernels,
                    is_ptx ? ptx_entries(result.image) : defined_functions(result.image)));
  PtxasLog log = parse_ptxas_log(program.log());
  result.log = std::move(log.rest);
  for (const std::string& name : request.kernels) {
    const auto found = std::find_if(log.kernels.begin(), log.kernels.end(),
                                    [&](const KernelInfo& kernel) { return kernel.name == name; });
    result.kernels.push_back(found == log.kernels.end() ? KernelInfo{.name = name} : *found);
  }
  return result;
}

absl::StatusOr<CompileResult> compile_with(const NvrtcLibrary& library,
                                           const CompileRequest& request) {
  NvrtcProgram program(library.call);
  KILN_RETURN_IF_ERROR(program.create(request));
  const nvrtcResult result = program.compile(options_for(library, request));
  if (result != NVRTC_SUCCESS) return failure(request, result, program.log());
  return take_result(program, request);
}

CompilerId id_of(const NvrtcLibrary& library) {
  std::string recipe;
  for (const std::string& option : fixed_options(library)) append_length_prefixed(recipe, option);
  return {.name = "nvrtc",
          .build = library.build + "-" + to_hex(hash128(recipe)).substr(0, 8),
          .headers = library.headers};
}

class NvrtcCompiler final : public Compiler {
 public:
  explicit NvrtcCompiler(NvrtcOptions options) : options_(std::move(options)) {}

  absl::StatusOr<CompilerId> id() const override {
    KILN_ASSIGN_OR_RETURN(const std::shared_ptr<const Loaded> loaded, this->loaded());
    return loaded->id;
  }

  absl::StatusOr<CompileResult> compile(const CompileRequest& request) const override {
    KILN_RETURN_IF_ERROR(check_hermetic(request));
    KILN_ASSIGN_OR_RETURN(const std::shared_ptr<const Loaded> loaded, this->loaded());
    const NvrtcLibrary& library = loaded->library;
    KILN_RETURN_IF_ERROR(check_arch(library, request.target));
    absl::StatusOr<CompileResult> result;
    KILN_RETURN_IF_ERROR(with_current_folder([&] { result = compile_with(library, request); }));
    return result;
  }

 private:
  struct Loaded {
    NvrtcLibrary library;
    CompilerId id;
  };

  absl::StatusOr<std::shared_ptr<const Loaded>> loaded() const {
    const std::lock_guard lock(mutex_);
    if (loaded_ == nullptr) {
      KILN_ASSIGN_OR_RETURN(NvrtcLibrary library, load_nvrtc(options_));
      CompilerId id = id_of(library);
      loaded_ = std::make_shared<const Loaded>(Loaded{std::move(library), std::move(id)});
    }
    return loaded_;
  }

  const NvrtcOptions options_;
  mutable std::mutex mutex_;  // guards all below
  mutable std::shared_ptr<const Loaded> loaded_;
};

}  // namespace

std::unique_ptr<Compiler> make_nvrtc_compiler(const NvrtcOptions& options) {
  return std::make_unique<NvrtcCompiler>(options);
}

}  // namespace kiln::jit
