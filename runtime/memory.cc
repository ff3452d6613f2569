#include <kiln/memory.h>

#include "base/log.h"

namespace kiln::inline v1 {

absl::StatusOr<OwnedTensor> OwnedTensor::allocate(DeviceSupport& support, const Stream& stream,
                                                  DType dtype, const Dims& shape) {
  KILN_ASSIGN_OR_RETURN(const std::int64_t elements, checked_numel(shape));
  OwnedTensor owned;
  KILN_ASSIGN_OR_RETURN(void* data,
                        support.allocate(stream, static_cast<std::size_t>(elements) *
                                                     static_cast<std::size_t>(size_of(dtype))));
  owned.tensor_ = Tensor::contiguous(data, stream.device, dtype, shape);
  owned.stream_ = stream;
  owned.support_ = &support;
  return owned;
}

OwnedTensor& OwnedTensor::operator=(OwnedTensor&& other) noexcept {
  if (this == &other) return *this;
  reset();
  tensor_ = std::exchange(other.tensor_, Tensor{});
  stream_ = other.stream_;
  support_ = std::exchange(other.support_, nullptr);
  return *this;
}

OwnedTensor::~OwnedTensor() { reset(); }

void OwnedTensor::reset() {
  if (support_ == nullptr) return;
  const absl::Status freed = support_->free(stream_, tensor_.data);
  if (!freed.ok())
    log_once(LogLevel::warning, "free", "memory of a tensor was not freed: " + message_of(freed));
  support_ = nullptr;
}

}  // namespace kiln::inline v1
