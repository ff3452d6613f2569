#include "runtime/tensor_buffer.h"

#include "runtime/dtype_convert.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstring>
#include <exception>

namespace kiln::internal {
namespace {

constexpr std::size_t kGuardBytes = 256;

}  // namespace

absl::StatusOr<TensorBuffer> TensorBuffer::allocate(DeviceSupport* support, const Stream& stream,
                                                    const ArgSpec& arg, bool with_image) {
  TensorBuffer buffer;
  buffer.support_ = support;
  buffer.stream_ = stream;
  std::int64_t below = 0, above = 0;  // elements before and behind the one at index 0
  for (int i = 0; i < arg.spec.shape.size(); ++i) {
    const std::int64_t reach = arg.spec.shape[i] > 0 ? arg.strides[i] * (arg.spec.shape[i] - 1) : 0;
    (reach < 0 ? below : above) += reach < 0 ? -reach : reach;
  }
  const auto element = static_cast<std::size_t>(size_of(arg.spec.dtype));
  const std::size_t before =
      kGuardBytes + (static_cast<std::size_t>(below) * element + 15) / 16 * 16;
  const std::size_t offset = arg.alignment < 16 ? static_cast<std::size_t>(arg.alignment) : 0;
  buffer.first_ = before + offset;
  buffer.bytes_ = buffer.first_ + (static_cast<std::size_t>(above) + 1) * element + kGuardBytes;
  try {
    if (with_image || support == nullptr) buffer.image_.assign(buffer.bytes_, '\xFF');
  } catch (const std::exception&) {  // out of memory, or longer than any vector
    return absl::ResourceExhaustedError(
        absl::StrFormat("a tensor must fit in this machine's memory: want %d bytes for %s%s",
                        buffer.bytes_, to_string(arg.spec.dtype), to_string(arg.spec.shape)));
  }
  char* base = buffer.image_.data();
  if (support != nullptr) {
    KILN_ASSIGN_OR_RETURN(buffer.memory_, support->allocate(stream, buffer.bytes_));
    base = static_cast<char*>(buffer.memory_);
  }
  if (reinterpret_cast<std::uintptr_t>(base) % 16 != 0) {
    return absl::InternalError("memory of tensors must be aligned to 16 bytes: got less");
  }
  buffer.tensor_ = {base + buffer.first_, arg.spec.device, arg.spec.dtype, arg.spec.shape,
                    arg.strides};
  return buffer;
}

TensorBuffer::TensorBuffer(TensorBuffer&& other) noexcept
    : support_(other.support_),
      stream_(other.stream_),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      first_(other.first_),
      image_(std::move(other.image_)),
      tensor_(other.tensor_) {}

TensorBuffer::~TensorBuffer() {
  if (memory_ != nullptr) (void)support_->free(stream_, memory_);
}

template <class F>
void TensorBuffer::for_each(F f) const {
  const Dims& shape = tensor_.shape;
  const std::size_t element = static_cast<std::size_t>(size_of(tensor_.dtype));
  const auto count = static_cast<std::size_t>(numel(shape));
  if (tensor_.is_contiguous()) {
    for (std::size_t i = 0; i < count; ++i) f(i, first_ + i * element);
    return;
  }
  Dims index = shape;
  for (int d = 0; d < index.size(); ++d) index[d] = 0;
  auto offset = static_cast<std::int64_t>(first_);
  for (std::size_t i = 0; i < count; ++i) {
    f(i, static_cast<std::size_t>(offset));
    for (int d = shape.size() - 1; d >= 0; --d) {
      const std::int64_t stride = tensor_.strides[d] * static_cast<std::int64_t>(element);
      offset += stride;
      if (++index[d] < shape[d]) break;
      offset -= stride * shape[d];
      index[d] = 0;
    }
  }
}

void TensorBuffer::set(const TestValues& values) {
  const auto element = static_cast<std::size_t>(size_of(tensor_.dtype));
  for_each([&](std::size_t i, std::size_t offset) {
    std::memcpy(image_.data() + offset, values.bytes(i), element);
  });
}

void TensorBuffer::set(const std::vector<double>& values) {
  for_each([&](std::size_t i, std::size_t offset) {
    store_element(tensor_.dtype, image_.data() + offset, values[i]);
  });
}

absl::Status TensorBuffer::repeat(const TestValues& values) {
  const std::size_t start = first_ % static_cast<std::size_t>(size_of(tensor_.dtype));
  char* const memory = static_cast<char*>(memory_) + start;
  const std::size_t bytes = bytes_ - start;
  std::size_t done = std::min(bytes, values.table().size());
  KILN_RETURN_IF_ERROR(support_->copy_to_device(stream_, memory, values.table().data(), done));
  while (done < bytes) {
    const std::size_t more = std::min(done, bytes - done);
    KILN_RETURN_IF_ERROR(support_->copy_on_device(stream_, memory + done, memory, more));
    done += more;
  }
  return absl::OkStatus();
}

absl::Status TensorBuffer::upload() {
  if (support_ == nullptr || image_.empty()) return absl::OkStatus();
  return support_->copy_to_device(stream_, memory_, image_.data(), image_.size());
}

absl::Status TensorBuffer::download() {
  if (support_ == nullptr) return absl::OkStatus();
  KILN_RETURN_IF_ERROR(support_->copy_to_host(stream_, image_.data(), memory_, image_.size()));
  return support_->synchronize(stream_);
}

std::vector<double> TensorBuffer::elements() const {
  std::vector<double> values(static_cast<std::size_t>(numel(tensor_.shape)));
  for_each([&](std::size_t i, std::size_t offset) {
    values[i] = load_element(tensor_.dtype, image_.data() + offset);
  });
  return values;
}

bool TensorBuffer::surroundings_intact() const {
  const std::size_t element = static_cast<std::size_t>(size_of(tensor_.dtype));
  const auto is_poison = [](char c) { return c == '\xFF'; };
  if (tensor_.is_contiguous()) {
    const std::size_t end = first_ + static_cast<std::size_t>(numel(tensor_.shape)) * element;
    for (std::size_t i = 0; i < first_; ++i) {
      if (!is_poison(image_[i])) return false;
    }
    for (std::size_t i = end; i < image_.size(); ++i) {
      if (!is_poison(image_[i])) return false;
    }
    return true;
  }
  std::vector<bool> is_element(image_.size());
  for_each([&](std::size_t, std::size_t offset) {
    for (std::size_t i = 0; i < element; ++i) is_element[offset + i] = true;
  });
  for (std::size_t i = 0; i < image_.size(); ++i) {
    if (!is_element[i] && !is_poison(image_[i])) return false;
  }
  return true;
}

absl::StatusOr<std::vector<std::optional<TensorBuffer>>> allocate_all(
    DeviceSupport& support, const Stream& stream, const std::vector<TensorParam>& params,
    const std::vector<std::optional<ArgSpec>>& args, bool with_images) {
  std::vector<std::optional<TensorBuffer>> buffers;
  for (std::size_t i = 0; i < args.size(); ++i) {
    buffers.emplace_back();
    if (!args[i]) continue;
    KILN_ASSIGN_OR_RETURN(
        TensorBuffer buffer,
        TensorBuffer::allocate(params[i].host ? nullptr : &support, stream, *args[i], with_images));
    buffers.back().emplace(std::move(buffer));
  }
  return buffers;
}

}  // namespace kiln::internal
