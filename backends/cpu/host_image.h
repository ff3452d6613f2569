#ifndef KILN_BACKENDS_CPU_HOST_IMAGE_H_
#define KILN_BACKENDS_CPU_HOST_IMAGE_H_

#include <kiln/device_support.h>
#include <kiln/status.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kiln::cpu {

// Loads a shared object from memory and finds `kernels` in it. Its symbols are seen by nobody else.
// It is unloaded with the object returned. `image` is only read during the call. Thread-safe.
//
// Errors: InvalidArgument for bytes that are no whole shared object of this machine, or that the
// loader refuses (with its message); NotFound names the kernel that is missing; FailedPrecondition
// when the process may not make files that can be executed.
absl::StatusOr<std::unique_ptr<LoadedImage>> load_host_image(std::string_view image,
                                                             std::span<const std::string> kernels);

}  // namespace kiln::cpu

#endif  // KILN_BACKENDS_CPU_HOST_IMAGE_H_
