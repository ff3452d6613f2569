#ifndef KILN_TENSOR_H_
#define KILN_TENSOR_H_

#include <kiln/device.h>
#include <kiln/dtype.h>
#include <kiln/export.h>
#include <kiln/status.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace kiln::inline v1 {

inline constexpr int kMaxRank = 8;

// Up to kMaxRank numbers, by value: a shape or strides. More are refused where they come in
// (parsing, DLPack).
class Dims {
 public:
  constexpr Dims() = default;
  // REQUIRES: values.size() <= kMaxRank. Use `from` for input that is not known.
  constexpr Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span(values.begin(), values.size())) {}
  constexpr explicit Dims(std::span<const std::int64_t> values) {
    for (std::int64_t value : values) {
      if (size_ < kMaxRank) values_[size_++] = value;
    }
  }
  // InvalidArgument for more than kMaxRank values.
  KILN_EXPORT static absl::StatusOr<Dims> from(std::span<const std::int64_t> values);

  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr std::int64_t operator[](int i) const { return values_[static_cast<std::size_t>(i)]; }
  constexpr std::int64_t& operator[](int i) { return values_[static_cast<std::size_t>(i)]; }
  constexpr const std::int64_t* begin() const { return values_.data(); }
  constexpr const std::int64_t* end() const { return values_.data() + size_; }
  friend constexpr bool operator==(const Dims&, const Dims&) = default;

 private:
  std::array<std::int64_t, kMaxRank>
      values_{};  // unused ones are 0, so that == and hashes need no care
  std::uint8_t size_ = 0;
};
KILN_EXPORT std::string to_string(const Dims& dims);  // "[8192, 4096]"

// Row-major strides, in elements, of a contiguous tensor. A dimension of extent 0 or 1 has the
// stride it would have.
KILN_EXPORT Dims contiguous_strides(const Dims& shape);

// Elements of a shape, 1 for a scalar. REQUIRES: no negative extent and a product below 2^63
// (`checked_numel` checks).
constexpr std::int64_t numel(const Dims& shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}
KILN_EXPORT absl::StatusOr<std::int64_t> checked_numel(const Dims& shape);

// What is known of a tensor without its data. Immutable value.
struct TensorSpec {
  Device device{};
  DType dtype = DType::float16;
  Dims shape;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};
KILN_EXPORT std::string to_string(const TensorSpec& spec);  // "float16[8192, 4096] on cuda:0"

// A non-owning view of memory. The memory must stay valid until the work enqueued with it has
// ended.
struct Tensor {
  void* data = nullptr;
  Device device{};
  DType dtype = DType::float16;
  Dims shape;
  Dims strides;  // in elements, as many as the shape has

  // A contiguous view.
  static Tensor contiguous(void* data, Device device, DType dtype, const Dims& shape) {
    return {data, device, dtype, shape, contiguous_strides(shape)};
  }
  TensorSpec spec() const { return {device, dtype, shape}; }
  std::int64_t elements() const { return numel(shape); }
  // True when elements lie row-major without gaps; extents of 1 may have any stride; empty tensors
  // are contiguous.
  KILN_EXPORT bool is_contiguous() const;
  // The largest power of two, at most 16, that divides the address.
  int alignment() const {
    const auto bits = reinterpret_cast<std::uintptr_t>(data) | 16;
    return static_cast<int>(bits & (~bits + 1));
  }
};

// An optional tensor argument: nullopt when the caller does not pass it.
using OptionalTensor = std::optional<Tensor>;

}  // namespace kiln::inline v1

#endif  // KILN_TENSOR_H_
