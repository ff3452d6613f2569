#ifndef KILN_MEMORY_H_
#define KILN_MEMORY_H_

#include <kiln/device_support.h>
#include <kiln/export.h>
#include <kiln/status.h>
#include <kiln/tensor.h>

#include <utility>

namespace kiln::inline v1 {

// A contiguous tensor that owns its memory; freed in order of the stream it was allocated on.
// Move-only.
class KILN_EXPORT OwnedTensor {
 public:
  OwnedTensor() = default;
  static absl::StatusOr<OwnedTensor> allocate(DeviceSupport& support, const Stream& stream,
                                              DType dtype, const Dims& shape);
  OwnedTensor(OwnedTensor&& other) noexcept { *this = std::move(other); }
  OwnedTensor& operator=(OwnedTensor&& other) noexcept;
  ~OwnedTensor();
  const Tensor& tensor() const { return tensor_; }

 private:
  void reset();
  Tensor tensor_;
  Stream stream_;
  DeviceSupport* support_ = nullptr;
};

}  // namespace kiln::inline v1

#endif  // KILN_MEMORY_H_
