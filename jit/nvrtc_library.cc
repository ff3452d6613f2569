#include "jit/nvrtc_library.h"

#include "base/hash128.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <charconv>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <link.h>
#include <optional>
#include <utility>

namespace kiln::jit {
namespace {

constexpr int kOldest = 12 * 1000 + 8;  // sm_100 and sm_120 came with 12.8
constexpr const char* kDefaultCudaHome = "/usr/local/cuda";

std::vector<std::string> cuda_homes(const NvrtcOptions& options) {
  std::vector<std::string> homes;
  if (!options.cuda_home.empty()) homes.push_back(options.cuda_home);
  if (options.cuda_home != kDefaultCudaHome) homes.emplace_back(kDefaultCudaHome);
  return homes;
}

std::vector<std::string> candidates(const NvrtcOptions& options) {
  if (!options.library.empty()) return {options.library};
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12"};
  for (const std::string& home : cuda_homes(options)) {
    for (const char* folder : {"/lib64/", "/targets/x86_64-linux/lib/", "/lib/"}) {
      for (const char* leaf : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
        names.push_back(home + folder + leaf);
      }
    }
  }
  names.emplace_back("libnvrtc.so");
  return names;
}

struct BuildIdQuery {
  ElfW(Addr) address = 0;  // of a function in the object that is asked about
  std::string id;
};

std::string to_hex_text(const unsigned char* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) absl::StrAppendFormat(&text, "%02x", bytes[i]);
  return text;
}

// The GNU build id among the notes in [note, end), hexadecimal; empty when there is none.
std::string find_build_id(const char* note, const char* end) {
  while (end - note >= static_cast<std::ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
    const auto* header = reinterpret_cast<const ElfW(Nhdr)*>(note);
    const char* name = note + sizeof(*header);
    const char* desc = name + ((header->n_namesz + 3u) & ~3u);
    const char* next = desc + ((header->n_descsz + 3u) & ~3u);
    if (next > end) break;
    if (header->n_type == NT_GNU_BUILD_ID &&
        std::string_view(name, header->n_namesz) == std::string_view("GNU\0", 4)) {
      return to_hex_text(reinterpret_cast<const unsigned char*>(desc), header->n_descsz);
    }
    note = next;
  }
  return {};
}

int visit_object(dl_phdr_info* info, std::size_t, void* data) {
  auto& query = *static_cast<BuildIdQuery*>(data);
  bool mine = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const ElfW(Addr) begin = info->dlpi_addr + segment.p_vaddr;
    mine = mine || (segment.p_type == PT_LOAD && query.address - begin < segment.p_memsz);
  }
  if (!mine) return 0;
  for (int i = 0; i < info->dlpi_phnum && query.id.empty(); ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* notes = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    query.id = find_build_id(notes, notes + segment.p_memsz);
  }
  return 1;
}

// What tells the loaded object that holds `symbol` from every other build of it: its build id, else
// its bytes.
std::string build_of(const void* symbol, const std::string& path) {
  BuildIdQuery query{.address = reinterpret_cast<ElfW(Addr)>(symbol), .id = {}};
  dl_iterate_phdr(visit_object, &query);
  if (!query.id.empty()) return query.id;
  std::ifstream file(path, std::ios::binary);
  return "xxh" + to_hex(hash128(std::string{std::istreambuf_iterator<char>(file),
                                            std::istreambuf_iterator<char>()}));
}

std::string path_of(const void* symbol) {
  Dl_info info = {};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

absl::Status load_functions(void* handle, std::string_view name, NvrtcFunctions& functions) {
  const auto load = [&](const char* symbol, auto& function) -> absl::Status {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (function != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrFormat("NVRTC: the library must have the function %s: %s has not; install NVRTC "
                        "of the CUDA Toolkit "
                        "12.8 or newer",
                        symbol, name));
  };
#define KILN_NVRTC_FUNCTION(name) KILN_RETURN_IF_ERROR(load(#name, functions.name));
#include "jit/nvrtc_functions.inc"
#undef KILN_NVRTC_FUNCTION
  return absl::OkStatus();
}

// NVRTC opens its builtins by bare name at the first compilation. Opening the file beside the
// library before that makes it find the right one wherever the toolkit lies, and tells early when
// there is none.
absl::StatusOr<std::string> load_builtins(const NvrtcLibrary& library) {
  const std::string leaf =
      absl::StrFormat("libnvrtc-builtins.so.%d.%d", library.major, library.minor);
  const std::string beside = (std::filesystem::path(library.path).parent_path() / leaf).string();
  void* handle = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) handle = dlopen(leaf.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrFormat("NVRTC: its builtins must be installed with it: found %s, but neither %s "
                        "nor %s on the loader's path; install "
                        "all of NVRTC (Debian: cuda-nvrtc-%d-%d)",
                        library.path, beside, leaf, library.major, library.minor));
  }
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return std::string("unknown");
  return build_of(map->l_ld, map->l_name);
}

// The value of CUDA_VERSION in the folder's cuda.h; nullopt when it has none.
std::optional<std::string> cuda_version_in(const std::string& include_dir) {
  std::ifstream file(std::filesystem::path(include_dir) / "cuda.h");
  constexpr std::string_view kDefine = "#define CUDA_VERSION ";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kDefine)) {
      const std::size_t end = line.find_first_not_of("0123456789", kDefine.size());
      return line.substr(kDefine.size(), end == line.npos ? end : end - kDefine.size());
    }
  }
  return std::nullopt;
}

absl::Status find_headers(const NvrtcOptions& options, NvrtcLibrary& library) {
  std::vector<std::string> folders;
  if (!options.include_dir.empty()) {
    folders = {options.include_dir};
  } else {
    // The toolkit that the library came from has the headers that fit it best.
    const std::filesystem::path lib = std::filesystem::path(library.path).parent_path();
    folders = {(lib / "../include").lexically_normal().string()};
    for (const std::string& home : cuda_homes(options)) folders.push_back(home + "/include");
  }
  for (const std::string& folder : folders) {
    if (auto version = cuda_version_in(folder)) {
      library.include_dir = folder;
      library.headers = *std::move(version);
      return absl::OkStatus();
    }
  }
  if (options.include_dir.empty())
    return absl::OkStatus();  // sources that include nothing of it still compile
  return absl::FailedPreconditionError(absl::StrFormat(
      "NVRTC: the toolkit's include folder must hold cuda.h: got '%s'", options.include_dir));
}

absl::StatusOr<NvrtcLibrary> describe_library(void* handle, const std::string& name,
                                              const NvrtcOptions& options) {
  NvrtcLibrary library;
  KILN_RETURN_IF_ERROR(load_functions(handle, name, library.call));
  KILN_RETURN_IF_ERROR(
      nvrtc_status(library.call.nvrtcVersion(&library.major, &library.minor), "nvrtcVersion"));
  const void* symbol = reinterpret_cast<const void*>(library.call.nvrtcVersion);
  library.path = path_of(symbol);
  if (library.major * 1000 + library.minor < kOldest) {
    return absl::FailedPreconditionError(
        absl::StrFormat("NVRTC: must be 12.8 or newer: %s is %d.%d; install a newer CUDA Toolkit",
                        library.path, library.major, library.minor));
  }
  int count = 0;
  KILN_RETURN_IF_ERROR(
      nvrtc_status(library.call.nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs"));
  library.archs.resize(static_cast<std::size_t>(count));
  KILN_RETURN_IF_ERROR(nvrtc_status(library.call.nvrtcGetSupportedArchs(library.archs.data()),
                                    "nvrtcGetSupportedArchs"));
  KILN_ASSIGN_OR_RETURN(const std::string builtins, load_builtins(library));
  library.build = absl::StrFormat("%d.%d-%s-%s", library.major, library.minor,
                                  build_of(symbol, library.path), builtins);
  KILN_RETURN_IF_ERROR(find_headers(options, library));
  return library;
}

}  // namespace

absl::StatusOr<NvrtcLibrary> load_nvrtc(const NvrtcOptions& options) {
  std::vector<std::string> looked;
  absl::Status unfit;  // the first library that was there and cannot be used
  for (const std::string& name : candidates(options)) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = dlerror();
      looked.push_back(why == nullptr ? name : why);
      continue;
    }
    absl::StatusOr<NvrtcLibrary> library = describe_library(handle, name, options);
    if (library.ok()) return library;
    if (unfit.ok()) unfit = library.status();
  }
  if (!unfit.ok()) return unfit;
  return absl::FailedPreconditionError(
      absl::StrFormat("NVRTC: libnvrtc must be installed where it can be found: looked for %s; "
                      "install the CUDA Toolkit 12.8 or newer "
                      "(its NVRTC part suffices), or set KILN_NVRTC to the library's file or "
                      "CUDA_HOME to the toolkit",
                      absl::StrJoin(looked, "; ")));
}

bool is_nvrtc_open(const NvrtcOptions& options) {
  for (const std::string& name : candidates(options)) {
    void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    dlclose(handle);
    return true;
  }
  return false;
}

std::vector<std::string> nvrtc_function_names() {
  return {
#define KILN_NVRTC_FUNCTION(name) #name,
#include "jit/nvrtc_functions.inc"
#undef KILN_NVRTC_FUNCTION
  };
}

absl::Status nvrtc_status(nvrtcResult result, std::string_view what) {
  const auto message = [&](std::string_view meaning) {
    return absl::StrFormat("NVRTC: %s failed: %s (%d)", what, meaning, static_cast<int>(result));
  };
  switch (result) {
    case NVRTC_SUCCESS:
      return absl::OkStatus();
    case NVRTC_ERROR_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(message("out of memory"));
    case NVRTC_ERROR_PROGRAM_CREATION_FAILURE:
      return absl::InternalError(message("the program was not created"));
    case NVRTC_ERROR_INVALID_INPUT:
      return absl::InternalError(message("invalid input"));
    case NVRTC_ERROR_INVALID_PROGRAM:
      return absl::InternalError(message("invalid program handle"));
    case NVRTC_ERROR_INVALID_OPTION:
      return with_kind(absl::InvalidArgumentError(message("invalid option")),
                       ErrorKind::compile_error);
    case NVRTC_ERROR_COMPILATION:
      return with_kind(absl::InvalidArgumentError(message("the source does not compile")),
                       ErrorKind::compile_error);
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
      return absl::FailedPreconditionError(
          message("its builtins do not work; install libnvrtc-builtins of the same release beside "
                  "libnvrtc"));
    case NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION:
    case NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION:
    case NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
      return absl::InternalError(message("wrong use of name expressions"));
    case NVRTC_ERROR_INTERNAL_ERROR:
      return absl::InternalError(message("internal error of NVRTC"));
    case NVRTC_ERROR_TIME_FILE_WRITE_FAILED:
    case NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED:
      return absl::UnavailableError(message("its timing file could not be written"));
    case NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED:
    case NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED:
    case NVRTC_ERROR_PCH_CREATE:
      return absl::InternalError(message("precompiled header trouble"));
    case NVRTC_ERROR_CANCELLED:
      return absl::CancelledError(message("cancelled"));
    default:
      return absl::InternalError(
          message("a result that this Kiln does not know"));  // of a newer NVRTC
  }
}

}  // namespace kiln::jit
