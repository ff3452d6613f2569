#include <kiln/tensor.h>

#include <absl/strings/str_format.h>

namespace kiln::inline v1 {

absl::StatusOr<Dims> Dims::from(std::span<const std::int64_t> values) {
  if (values.size() > static_cast<std::size_t>(kMaxRank)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("dims: at most %d dimensions: got %d", kMaxRank, values.size()));
  }
  return Dims(values);
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims[i]);  // integers: no locale can change them
  }
  return text + "]";
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides = shape;
  // Unsigned, so that a shape nobody has checked yet wraps around instead of being undefined.
  std::uint64_t stride = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = static_cast<std::int64_t>(stride);
    if (shape[i] > 1) stride *= static_cast<std::uint64_t>(shape[i]);
  }
  return strides;
}

absl::StatusOr<std::int64_t> checked_numel(const Dims& shape) {
  std::int64_t count = 1;
  bool is_empty = false;
  bool overflow = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("shape: extents must not be negative: got %s", to_string(shape)));
    }
    is_empty = is_empty || extent == 0;
    // A zero further on makes the product 0 whatever came before it.
    overflow = overflow || (extent != 0 && __builtin_mul_overflow(count, extent, &count));
  }
  if (is_empty) return 0;
  if (overflow) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "shape: the number of elements must be below 2^63: got %s", to_string(shape)));
  }
  return count;
}

std::string to_string(const TensorSpec& spec) {
  return absl::StrFormat("%s%s on %s", to_string(spec.dtype), to_string(spec.shape),
                         to_string(spec.device));
}

bool Tensor::is_contiguous() const {
  if (strides.size() != shape.size()) return false;
  for (std::int64_t extent : shape) {
    if (extent == 0) return true;
  }
  const Dims wanted = contiguous_strides(shape);
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && strides[i] != wanted[i]) return false;
  }
  return true;
}

}  // namespace kiln::inline v1
