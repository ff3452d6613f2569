#ifndef KILN_JIT_NVRTC_LIBRARY_H_
#define KILN_JIT_NVRTC_LIBRARY_H_

#include <kiln/export.h>
#include <kiln/status.h>

#include <nvrtc.h>

#include <string>
#include <vector>

namespace kiln::jit {

// Where NVRTC and the toolkit's headers are looked for. The fields come from the environment at the
// edge of the program; nothing here reads it.
struct NvrtcOptions {
  std::string library;      // $KILN_NVRTC: this file and no other
  std::string cuda_home;    // $CUDA_HOME, else $CUDA_PATH
  std::string include_dir;  // the folder with cuda_fp16.h; empty: cuda_home/include, then
                            // /usr/local/cuda/include
};

// The entry points, under NVRTC's own names.
struct NvrtcFunctions {
#define KILN_NVRTC_FUNCTION(name) decltype(&::name) name = nullptr;
#include "jit/nvrtc_functions.inc"
#undef KILN_NVRTC_FUNCTION
};

// NVRTC as it was found. Immutable. The library is never closed: it keeps threads and tables of its
// own.
struct NvrtcLibrary {
  NvrtcFunctions call;
  std::string path;  // the file in use
  int major = 0;
  int minor = 0;
  std::string
      build;  // "13.0-<build id of the library and of its builtins>": tells patch releases apart
  std::vector<int> archs;   // what it compiles for
  std::string include_dir;  // of the toolkit; empty when there is none
  std::string headers;      // CUDA_VERSION in its cuda.h, "13000"; empty when there is none
};

// Opens NVRTC 12.8 or newer: options.library where given, else libnvrtc.so.13 and .12 by the
// loader's own search, else those of the toolkit, else libnvrtc.so. Errors: FailedPrecondition, one
// message each for: not found (where it was looked for, what to install), a function is missing,
// the release is too old, libnvrtc-builtins is missing.
KILN_EXPORT absl::StatusOr<NvrtcLibrary> load_nvrtc(const NvrtcOptions& options);

// Is one of the libraries that `load_nvrtc` would try already open in this process?
KILN_EXPORT bool is_nvrtc_open(const NvrtcOptions& options);

// The names of `NvrtcFunctions`, for reports.
KILN_EXPORT std::vector<std::string> nvrtc_function_names();

// What NVRTC's `result` of `what` means as a status; ok for NVRTC_SUCCESS.
KILN_EXPORT absl::Status nvrtc_status(nvrtcResult result, std::string_view what);

}  // namespace kiln::jit

#endif  // KILN_JIT_NVRTC_LIBRARY_H_
