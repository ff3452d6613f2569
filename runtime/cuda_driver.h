#ifndef KILN_RUNTIME_CUDA_DRIVER_H_
#define KILN_RUNTIME_CUDA_DRIVER_H_

#include <kiln/export.h>
#include <kiln/status.h>

#include <cuda.h>

#include <cudaTypedefs.h>
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

// The library a driver installs; "libcuda.so" is only there where development files are.
inline constexpr std::string_view kCudaLibrary = "libcuda.so.1";

// The CUDA driver, opened at run time: a table of function pointers, one for each line of
// cuda_functions.inc, named as there (`driver.launch_kernel_ex(...)`). Immutable and thread-safe
// once open. The library is never closed.
class KILN_EXPORT CudaDriver {
 public:
  // Opens `library` (a name that the loader looks for, or a path), finds all functions and
  // initialises the driver.
  //
  // Errors, all FailedPrecondition and told apart by their text:
  //   "<library> could not be opened"   no driver here; says what the loader said and what to
  //   install "has no function"                 the library lacks one that its version should have;
  //   names it "is too old"                      names the version it has and the one that is
  //   needed
  // and what cuInit says, except that a driver without a device opens well (`has_devices()` is
  // false).
  static absl::StatusOr<std::unique_ptr<const CudaDriver>> open(
      std::string_view library = kCudaLibrary);

  // The CUDA version the driver supports, 1000 * major + 10 * minor.
  int version() const { return version_; }
  // The name or path it was opened by.
  const std::string& library() const { return library_; }
  bool has_devices() const { return has_devices_; }

  // The address of any driver function in the form of `version`, for tools and tests. Errors as
  // `open`.
  absl::StatusOr<void*> find(const char* symbol, int version) const;

  // Ok for CUDA_SUCCESS; else a status whose message is `what` with the driver's own name, number
  // and text for `result`. Codes: ResourceExhausted out of memory or launch resources; Aborted for
  // a sticky device error, after which nothing works in this context; InvalidArgument, NotFound,
  // Unimplemented, Unavailable, DeadlineExceeded, FailedPrecondition by the kind of error; Internal
  // for the rest.
  absl::Status status(CUresult result, std::string_view what) const;

#define KILN_CUDA_FUNCTION(member, symbol, version) PFN_##symbol##_v##version member = nullptr;
#define KILN_CUDA_OPTIONAL KILN_CUDA_FUNCTION
#include "runtime/cuda_functions.inc"
#undef KILN_CUDA_OPTIONAL
#undef KILN_CUDA_FUNCTION

 private:
  CudaDriver() = default;
  absl::Status load_functions();
  absl::Status initialise();

  std::string library_;
  int version_ = 0;
  bool has_devices_ = false;
  PFN_cuGetProcAddress_v12000 get_proc_address_ = nullptr;
};

// True from the moment the process began to exit normally. The driver tears itself down then, and
// handles that still wait to be released are left to it: they are leaked on purpose.
KILN_EXPORT bool process_is_exiting();

}  // namespace kiln

#endif  // KILN_RUNTIME_CUDA_DRIVER_H_
