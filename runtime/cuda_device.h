#ifndef KILN_RUNTIME_CUDA_DEVICE_H_
#define KILN_RUNTIME_CUDA_DEVICE_H_

#include <kiln/compiler.h>
#include <kiln/device_support.h>
#include <kiln/export.h>

#include <memory>

namespace kiln {

// The device type "cuda": the driver's devices with `compiler` (NVRTC's), which must not be null.
//
// The driver is opened by the first method that needs it; a failure is not remembered, so that a
// driver that is installed or becomes ready later is found. Each device's primary context is
// retained on first use and stays so. Every method works from any thread and leaves that thread's
// current context as it was.
//
// A null stream handle is the legacy default stream and CU_STREAM_PER_THREAD the thread's own.
// Streams must be of the device's primary context: those of a context made by cuCtxCreate are
// refused by the driver.
KILN_EXPORT std::unique_ptr<DeviceSupport> make_cuda_support(std::unique_ptr<Compiler> compiler);

}  // namespace kiln

#endif  // KILN_RUNTIME_CUDA_DEVICE_H_
