// How a driver error becomes a status: one switch on the driver's own numbers.

#include "runtime/cuda_driver.h"

#include <absl/strings/str_format.h>

namespace kiln {
namespace {

absl::StatusCode code_of(CUresult result) {  // NOLINT(readability-function-size): a table
  switch (result) {
    case CUDA_SUCCESS:
      return absl::StatusCode::kOk;

    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
      return absl::StatusCode::kResourceExhausted;

    // Sticky: every later call in the context, and often in the process, fails the same way.
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return absl::StatusCode::kAborted;

    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return absl::StatusCode::kInvalidArgument;

    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_FILE_NOT_FOUND:
    case CUDA_ERROR_INVALID_DEVICE:
      return absl::StatusCode::kNotFound;

    case CUDA_ERROR_NOT_SUPPORTED:
      return absl::StatusCode::kUnimplemented;

    case CUDA_ERROR_NOT_READY:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return absl::StatusCode::kUnavailable;

    case CUDA_ERROR_TIMEOUT:
      return absl::StatusCode::kDeadlineExceeded;

    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_ALREADY_CURRENT:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_ILLEGAL_STATE:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_CAPTURED_EVENT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
      return absl::StatusCode::kFailedPrecondition;

    default:
      return absl::StatusCode::kInternal;
  }
}

// What a user should know beyond the driver's own text; empty for most.
std::string_view advice_for(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NOT_INITIALIZED:
      return "; the driver cannot be used in a process that was forked after its parent used it";
    case CUDA_ERROR_STUB_LIBRARY:
      return "; this is the toolkit's stub, which is only there to link against: take its folder "
             "out of "
             "LD_LIBRARY_PATH";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "; the driver library and the kernel module are of different versions: reboot, or "
             "reload the module";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "; the image was built for another arch";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "; the compiler is newer than the driver: install a newer driver or an older toolkit";
    default:
      return code_of(result) == absl::StatusCode::kAborted
                 ? "; the device context is lost and the process must be restarted"
                 : "";
  }
}

}  // namespace

absl::Status CudaDriver::status(CUresult result, std::string_view what) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  // Both refuse a number that this driver does not know.
  if (get_error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  if (get_error_string(result, &text) != CUDA_SUCCESS || text == nullptr) text = "no text";
  return absl::Status(code_of(result),
                      absl::StrFormat("%s: %s (%d): %s%s", what, name, static_cast<int>(result),
                                      text, advice_for(result)));
}

}  // namespace kiln
