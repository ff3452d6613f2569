#ifndef KILN_DLPACK_H_
#define KILN_DLPACK_H_

#include <kiln/export.h>
#include <kiln/status.h>
#include <kiln/tensor.h>

#include <functional>
#include <utility>

// Of <dlpack/dlpack.h>, which a user of these functions includes on its own.
struct DLManagedTensor;           // without a version: what every framework speaks
struct DLManagedTensorVersioned;  // of DLPack 1.0 and later

// Tensors from and to DLPack. No element is copied and no stream is waited for: producer and
// consumer agree on a stream as DLPack's Python protocol says.
//
// Types: float16, bfloat16, float32, float64, the int and uint ones of DType, bool, float8_e4m3
// (kDLFloat8_e4m3fn) and float8_e5m2, with one lane. Devices:
//   kDLCPU          <-> cpu:<id>
//   kDLCUDA         <-> cuda:<id>
//   kDLCUDAHost      -> cpu:0      pinned host memory, read by host code
//   kDLCUDAManaged   -> cuda:<id>  every device reaches it; it is taken as memory of the one that
//   is named
// Everything else is refused in both directions. Strides of null are those of a contiguous tensor.
//
// All functions are thread-safe; the objects are for one thread at a time.
namespace kiln::inline v1 {

// A tensor that a producer handed over, with the duty to tell it when it is no longer needed.
class KILN_EXPORT DlpackTensor {
 public:
  // Take over `managed`, whose deleter is called exactly once: when this object is destroyed or
  // another is moved into it. After an error nothing was taken over, and `managed` is still the
  // caller's. Null, or a type, device, shape or version that Kiln does not know: InvalidArgument
  // with what was received.
  static absl::StatusOr<DlpackTensor> take(DLManagedTensor* managed);
  static absl::StatusOr<DlpackTensor> take(DLManagedTensorVersioned* managed);

  ~DlpackTensor();
  DlpackTensor(DlpackTensor&& other) noexcept { swap(other); }
  DlpackTensor& operator=(DlpackTensor&& other) noexcept {
    DlpackTensor(std::move(other)).swap(*this);
    return *this;
  }

  // Valid as long as this object.
  const Tensor& tensor() const { return tensor_; }
  // The producer forbids writing. Never true without a version, where it cannot be said.
  bool is_read_only() const { return is_read_only_; }

 private:
  DlpackTensor() = default;
  void swap(DlpackTensor& other) noexcept {
    std::swap(tensor_, other.tensor_);
    std::swap(is_read_only_, other.is_read_only_);
    std::swap(plain_, other.plain_);
    std::swap(versioned_, other.versioned_);
  }

  Tensor tensor_;
  bool is_read_only_ = false;
  DLManagedTensor* plain_ = nullptr;  // one of the two is set
  DLManagedTensorVersioned* versioned_ = nullptr;
};

// A view without taking over: valid as long as the producer keeps the memory. Errors as
// DlpackTensor::take.
KILN_EXPORT absl::StatusOr<Tensor> view_dlpack(const DLManagedTensor* managed);
KILN_EXPORT absl::StatusOr<Tensor> view_dlpack(const DLManagedTensorVersioned* managed);

// Hands `tensor` to a consumer, who calls the result's deleter once; that runs `release` (it may be
// empty; it must not throw), which must keep the memory alive until then and may be called from any
// thread. After an error `release` is not called. Errors: InvalidArgument for a device type or
// shape that DLPack or Kiln has no word for.
KILN_EXPORT absl::StatusOr<DLManagedTensor*> to_dlpack(const Tensor& tensor,
                                                       std::function<void()> release);
KILN_EXPORT absl::StatusOr<DLManagedTensorVersioned*> to_dlpack_versioned(
    const Tensor& tensor, std::function<void()> release, bool read_only = false);

}  // namespace kiln::inline v1

#endif  // KILN_DLPACK_H_
