#include "runtime/cuda_driver.h"

#include <absl/strings/str_format.h>

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace kiln {
namespace {

constexpr int kOldestDriver = 12000;  // cuLibraryLoadData, cuKernelGetFunction

std::atomic<bool> exiting{false};

void mark_exiting() { exiting.store(true, std::memory_order_relaxed); }

std::string version_text(int version) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
}

absl::Status too_old(const std::string& library, int has, int needs, std::string_view why) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "cuda: the driver is too old: %s supports CUDA %s and Kiln needs %s (for %s); install a "
      "newer NVIDIA driver",
      library, version_text(has), version_text(needs), why));
}

absl::Status no_function(const std::string& library, int version, std::string_view symbol) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "cuda: %s supports CUDA %s but has no function %s: it is damaged or not NVIDIA's; reinstall "
      "the NVIDIA driver",
      library, version_text(version), symbol));
}

absl::StatusOr<void*> open_library(const std::string& library) {
  if (void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* reason = dlerror();
  return absl::FailedPreconditionError(absl::StrFormat(
      "cuda: %s could not be opened (%s); looked where the loader looks: LD_LIBRARY_PATH, the "
      "ldconfig cache and the system's library folders; install the NVIDIA driver, or in a "
      "container pass it in (for example with --gpus all)",
      library, reason == nullptr ? "no reason given" : reason));
}

}  // namespace

bool process_is_exiting() { return exiting.load(std::memory_order_relaxed); }

absl::StatusOr<std::unique_ptr<const CudaDriver>> CudaDriver::open(std::string_view library) {
  std::unique_ptr<CudaDriver> driver(new CudaDriver);
  driver->library_ = std::string(library);
  KILN_ASSIGN_OR_RETURN(void* handle, open_library(driver->library_));

  // These two are the library's own exports: everything else is asked of the second.
  const auto get_version =
      reinterpret_cast<PFN_cuDriverGetVersion_v2020>(dlsym(handle, "cuDriverGetVersion"));
  if (get_version == nullptr || get_version(&driver->version_) != CUDA_SUCCESS) {
    return no_function(driver->library_, 0, "cuDriverGetVersion");
  }
  if (driver->version_ < kOldestDriver) {
    return too_old(driver->library_, driver->version_, kOldestDriver, "cuLibraryLoadData");
  }
  driver->get_proc_address_ =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(handle, "cuGetProcAddress_v2"));
  if (driver->get_proc_address_ == nullptr) {
    return no_function(driver->library_, driver->version_, "cuGetProcAddress_v2");
  }
  KILN_RETURN_IF_ERROR(driver->load_functions());
  KILN_RETURN_IF_ERROR(driver->initialise());
  return driver;
}

absl::StatusOr<void*> CudaDriver::find(const char* symbol, int version) const {
  void* address = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  // The legacy form: null is the legacy default stream, as Stream says.
  const CUresult result =
      get_proc_address_(symbol, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
  if (result == CUDA_SUCCESS && address != nullptr) return address;
  if (version_ < version) return too_old(library_, version_, version, symbol);
  return no_function(library_, version_, symbol);
}

absl::Status CudaDriver::load_functions() {
#define KILN_CUDA_FUNCTION(member, symbol, version)                \
  {                                                                \
    KILN_ASSIGN_OR_RETURN(void* address, find(#symbol, version));  \
    member = reinterpret_cast<PFN_##symbol##_v##version>(address); \
  }
#define KILN_CUDA_OPTIONAL(member, symbol, version)                 \
  if (const auto address = find(#symbol, version); address.ok()) {  \
    member = reinterpret_cast<PFN_##symbol##_v##version>(*address); \
  }
#include "runtime/cuda_functions.inc"
#undef KILN_CUDA_OPTIONAL
#undef KILN_CUDA_FUNCTION
  return absl::OkStatus();
}

absl::Status CudaDriver::initialise() {
  const CUresult result = init(0);
  if (result == CUDA_ERROR_NO_DEVICE) return absl::OkStatus();
  KILN_RETURN_IF_ERROR(status(result, "cuda: initialising the driver"));
  has_devices_ = true;
  // Registered after the driver's own handlers, so it runs before them.
  static std::once_flag once;
  std::call_once(once, [] { std::atexit(mark_exiting); });
  return absl::OkStatus();
}

}  // namespace kiln
