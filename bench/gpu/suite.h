#ifndef KILN_BENCH_GPU_SUITE_H_
#define KILN_BENCH_GPU_SUITE_H_

#include <kiln/kiln.h>

#include "bench/gpu/cuda_session.h"
#include "bench/gpu/device_state.h"
#include "bench/gpu/device_timer.h"
#include "runtime/call_json.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

// What gpu_bench and the library for other languages share: a device, a timer and a runtime, and
// the form of their results (docs/benchmarks.md).
namespace kiln::bench {

struct SuiteOptions {
  int device = 0;
  std::string cupti;  // the library; empty: looked for
};

// One thread at a time.
class Suite {
 public:
  // Errors: FailedPrecondition without a driver or a device. A missing profiler is no error: the
  // results say it.
  static absl::StatusOr<std::unique_ptr<Suite>> open(const SuiteOptions& options);

  const CudaSession& session() const { return *session_; }
  DeviceTimer& timer() { return *timer_; }
  Runtime& runtime() { return runtime_; }
  // `handle` as a stream of Kiln's on this device.
  Stream stream(void* handle) const;

  // {"device","driver","cuda","cupti",...}
  internal::Json machine() const;
  // {"sm_mhz","memory_mhz","watts","celsius","throttle_reasons"}; null without NVML
  internal::Json device_state() const;
  // {"copy":[{"bytes","us","bytes_per_second"}],"empty_kernel_us","bytes_per_second"}: how fast
  // device copies of several sizes are, both directions counted, and how short a kernel can be.
  absl::StatusOr<internal::Json> floor(const TimerOptions& options);
  // The largest difference of two tensors' elements, each relative to 1 + the element's magnitude;
  // infinite where only one is NaN. Waits for the stream.
  absl::StatusOr<double> difference(const Tensor& a, const Tensor& b, CUstream stream);
  // A copy that moves `bytes` in all, as a contender; its memory lives as long as the suite.
  absl::StatusOr<Contender> copy_of(std::size_t bytes, CUstream stream);
  // Launches a kernel that does nothing by the driver's function alone, with the parameters of a
  // layer normalization: the driver copies them, too.
  absl::StatusOr<std::function<absl::Status()>> bare_launch(CUstream stream);
  // Microseconds of the calling thread that one `call` takes, one figure a round of `calls`, each
  // begun with the stream idle. `calls` are few enough that the driver's queue takes them all.
  absl::StatusOr<std::vector<double>> host_us(const std::function<absl::Status()>& call,
                                              CUstream stream, int calls, int rounds);

 private:
  explicit Suite(RuntimeOptions options) : runtime_(std::move(options)) {}
  absl::StatusOr<Contender> empty_kernel(CUstream stream);
  absl::StatusOr<std::unique_ptr<LoadedImage>> compile(const std::string& source,
                                                       const std::vector<std::string>& kernels);

  Runtime runtime_;
  std::unique_ptr<CudaSession> session_;
  std::unique_ptr<DeviceTimer> timer_;
  std::unique_ptr<const Nvml> nvml_;
  DeviceSupport* support_ = nullptr;
  std::unique_ptr<LoadedImage> empty_image_, bare_image_, difference_image_;
  CUdeviceptr copy_memory_ = 0;  // two halves
};

internal::Json json_of(const TimerOptions& options, const CudaSession& session);
internal::Json json_of(const Timing& timing);

}  // namespace kiln::bench

#endif  // KILN_BENCH_GPU_SUITE_H_
