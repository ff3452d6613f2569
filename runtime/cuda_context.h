#ifndef KILN_RUNTIME_CUDA_CONTEXT_H_
#define KILN_RUNTIME_CUDA_CONTEXT_H_

#include <kiln/status.h>

#include "base/mutex.h"
#include "runtime/cuda_driver.h"

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <memory>

namespace kiln {

// What is known of a device once its primary context is retained. Never changes after.
struct CudaContext {
  CUcontext handle = nullptr;
  int index = 0;
  int arch = 0;         // 10 * major + minor
  int smem_budget = 0;  // bytes a block may use, opted in
  bool has_memory_pools = false;
};

// The open driver and the primary contexts of its devices, each retained on first use and never
// released: the framework beside us uses the same one, and at exit the driver may be gone before we
// are. Thread-safe.
class CudaContexts {
 public:
  static absl::StatusOr<std::unique_ptr<CudaContexts>> open();

  const CudaDriver& driver() const { return *driver_; }
  int device_count() const { return device_count_; }

  // NotFound for an index that is not there.
  absl::Status check(int index) const;

  // The device's context; null before its first `get`. No lock.
  const CudaContext* find(int index) const {
    return contexts_[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
  }
  // The same, retained if it was not. Errors: NotFound for an index that is not there.
  absl::StatusOr<const CudaContext*> get(int index);

  absl::StatusOr<CUdevice> device(int index) const;
  absl::StatusOr<int> attribute(int index, CUdevice_attribute which) const;

 private:
  static constexpr std::size_t kMaxDevices = 256;  // Device::index is one byte

  CudaContexts() = default;
  absl::StatusOr<std::unique_ptr<const CudaContext>> retain(int index) const;

  std::unique_ptr<const CudaDriver> driver_;
  int device_count_ = 0;
  Mutex mutex_;  // held to retain, not to find
  std::array<std::atomic<const CudaContext*>, kMaxDevices> contexts_{};
};

// Makes a context current for the life of this object and then brings back what was current before,
// be it another context or none. Costs one look when it is current already. One thread at a time.
class ScopedContext {
 public:
  ScopedContext(const CudaDriver& driver, const CudaContext& wanted) : driver_(driver) {
    CUcontext current = nullptr;
    result_ = driver.ctx_get_current(&current);
    if (result_ != CUDA_SUCCESS || current == wanted.handle) return;
    result_ = driver.ctx_push_current(wanted.handle);
    is_pushed_ = result_ == CUDA_SUCCESS;
  }
  ~ScopedContext() {
    CUcontext popped = nullptr;
    if (is_pushed_) driver_.ctx_pop_current(&popped);
  }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

  // Whether the context is current now.
  CUresult result() const { return result_; }

 private:
  const CudaDriver& driver_;
  CUresult result_ = CUDA_SUCCESS;
  bool is_pushed_ = false;
};

// Lets this thread make calls that are not allowed while some other thread of the process captures
// a graph in global mode (loading, plain allocation), without breaking that capture. Brings the
// thread's mode back. One thread at a time.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaDriver& driver) : driver_(driver) {
    driver_.thread_exchange_capture_mode(&mode_);
  }
  ~RelaxedCapture() { driver_.thread_exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace kiln

#endif  // KILN_RUNTIME_CUDA_CONTEXT_H_
