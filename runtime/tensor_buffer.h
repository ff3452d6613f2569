#ifndef KILN_RUNTIME_TENSOR_BUFFER_H_
#define KILN_RUNTIME_TENSOR_BUFFER_H_

#include <kiln/device_support.h>
#include <kiln/export.h>
#include <kiln/signature.h>
#include <kiln/tensor.h>

#include "runtime/test_values.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kiln::internal {

// Memory of one tensor of a call as its ArgSpec states it: strides, and exactly that alignment.
// Every byte that is no element is 0xFF (a NaN in every floating dtype), also some before and
// behind the tensor, so that what a kernel reads beside it poisons the result, and what it writes
// there is seen. Move-only.
class KILN_EXPORT TensorBuffer {
 public:
  // On the stream's device; in host memory when `support` is null. Without an image, which only a
  // device's may do, nothing can be looked at, and only `repeat` fills it.
  static absl::StatusOr<TensorBuffer> allocate(DeviceSupport* support, const Stream& stream,
                                               const ArgSpec& arg, bool with_image = true);
  TensorBuffer(TensorBuffer&& other) noexcept;
  TensorBuffer& operator=(TensorBuffer&&) = delete;
  ~TensorBuffer();

  const Tensor& tensor() const { return tensor_; }

  // Fills every element; without values they stay 0xFF.
  void set(const TestValues& values);
  // The same in row-major order, each as the dtype rounds it. REQUIRES: as many as elements.
  void set(const std::vector<double>& values);
  // The table of `values` over and over, copied on the device: at the speed of its memory.
  absl::Status repeat(const TestValues& values);
  absl::Status upload();
  absl::Status download();
  // All bytes, those beside the tensor too, as of the last set() or download().
  const std::vector<char>& image() const { return image_; }
  // Takes `image`, one of this buffer's, as the bytes to upload.
  void set_image(const std::vector<char>& image) { image_ = image; }
  // The elements as doubles in row-major order, as of the last set() or download().
  std::vector<double> elements() const;
  // True when no byte beside the elements was written, as of the last download().
  bool surroundings_intact() const;

 private:
  TensorBuffer() = default;
  // Calls f(position, offset) for every element: its place in row-major order and its byte offset
  // in the image.
  template <class F>
  void for_each(F f) const;

  DeviceSupport* support_ = nullptr;
  Stream stream_;
  void* memory_ = nullptr;  // on the device, as many bytes as the image
  std::size_t bytes_ = 0;   // of the memory
  std::size_t first_ = 0;   // byte offset of the element at index 0
  std::vector<char> image_;
  Tensor tensor_;
};

// One for each argument of a call, none where an optional is left out; those of host parameters in
// host memory, always with an image.
KILN_EXPORT absl::StatusOr<std::vector<std::optional<TensorBuffer>>> allocate_all(
    DeviceSupport& support, const Stream& stream, const std::vector<TensorParam>& params,
    const std::vector<std::optional<ArgSpec>>& args, bool with_images = true);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TENSOR_BUFFER_H_
