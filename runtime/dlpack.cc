#include <kiln/dlpack.h>

#include "runtime/dlpack_abi.h"

#include <absl/strings/str_format.h>

#include <memory>
#include <optional>

namespace kiln::inline v1 {
namespace {

struct TypeCode {
  DType dtype;
  std::uint8_t code;
  std::uint8_t bits;
};

constexpr TypeCode kTypeCodes[] = {
    {DType::float16, kDLFloat, 16},
    {DType::bfloat16, kDLBfloat, 16},
    {DType::float32, kDLFloat, 32},
    {DType::float64, kDLFloat, 64},
    {DType::float8_e4m3, dlpack::kFloat8E4m3fn, 8},
    {DType::float8_e5m2, dlpack::kFloat8E5m2, 8},
    {DType::int8, kDLInt, 8},
    {DType::int16, kDLInt, 16},
    {DType::int32, kDLInt, 32},
    {DType::int64, kDLInt, 64},
    {DType::uint8, kDLUInt, 8},
    {DType::boolean, dlpack::kBool, 8},
};

absl::StatusOr<DType> dtype_from(const DLDataType& type) {
  for (const TypeCode& known : kTypeCodes) {
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return known.dtype;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "dlpack: the data type must be one of Kiln's with one lane: got code %d, %d bits, %d lanes",
      type.code, type.bits, type.lanes));
}

absl::StatusOr<Device> device_from(const DLDevice& device) {
  const auto type = static_cast<int>(device.device_type);
  if (device.device_id < 0 || device.device_id > 254) {
    return absl::InvalidArgumentError(
        absl::StrFormat("dlpack: the device id must be 0 to 254: got %d", device.device_id));
  }
  const auto index = static_cast<std::uint8_t>(device.device_id);
  switch (type) {
    case kDLCPU:
      return Device{DeviceType::cpu(), index};
    case kDLCUDAHost:
      return Device{DeviceType::cpu(), 0};
    case kDLCUDA:
    case kDLCUDAManaged:
      return Device{DeviceType::cuda(), index};
    default:
      return absl::InvalidArgumentError(absl::StrFormat(
          "dlpack: the device must be kDLCPU, kDLCUDA, kDLCUDAHost or kDLCUDAManaged: got device "
          "type %d",
          type));
  }
}

absl::Status check_shape(const DLTensor& from) {
  if (from.ndim < 0 || from.ndim > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "dlpack: a tensor must have 0 to %d dimensions: got %d", kMaxRank, from.ndim));
  }
  if (from.ndim > 0 && from.shape == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("dlpack: the shape of %d dimensions must be given: got null", from.ndim));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> tensor_from(const DLTensor& from) {
  KILN_RETURN_IF_ERROR(check_shape(from));
  const auto rank = static_cast<std::size_t>(from.ndim);
  Tensor tensor;
  KILN_ASSIGN_OR_RETURN(tensor.dtype, dtype_from(from.dtype));
  KILN_ASSIGN_OR_RETURN(tensor.device, device_from(from.device));
  tensor.shape = Dims(std::span<const std::int64_t>(from.shape, rank));
  absl::StatusOr<std::int64_t> elements = checked_numel(tensor.shape);
  if (!elements.ok()) return annotate(elements.status(), "dlpack");
  tensor.strides = from.strides == nullptr
                       ? contiguous_strides(tensor.shape)
                       : Dims(std::span<const std::int64_t>(from.strides, rank));
  if (from.data == nullptr) {
    if (*elements == 0) return tensor;
    return absl::InvalidArgumentError(
        absl::StrFormat("dlpack: a tensor with elements must have data: got null for shape %s",
                        to_string(tensor.shape)));
  }
  tensor.data = static_cast<char*>(from.data) + from.byte_offset;
  return tensor;
}

absl::Status check_version(const DLManagedTensorVersioned& managed) {
  if (managed.version.major == dlpack::kMajorVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("dlpack: the major version must be %d: got %d.%d", dlpack::kMajorVersion,
                      managed.version.major, managed.version.minor));
}

absl::Status null_error() {
  return absl::InvalidArgumentError("dlpack: a managed tensor must be given: got null");
}

// What a consumer holds: the C struct first to last, the arrays it points to, and what to do at the
// end.
template <typename Managed>
struct Export {
  Managed managed{};
  Dims shape;
  Dims strides;
  std::function<void()> release;

  static void destroy(Managed* self) {
    const std::unique_ptr<Export> owner(static_cast<Export*>(self->manager_ctx));
    if (owner->release) owner->release();
  }
};

absl::StatusOr<DLDevice> device_to(Device device) {
  if (device.type == DeviceType::cpu()) return DLDevice{kDLCPU, device.index};
  if (device.type == DeviceType::cuda()) return DLDevice{kDLCUDA, device.index};
  return absl::InvalidArgumentError(absl::StrFormat(
      "dlpack: only tensors of cpu and cuda devices can be handed over: got one on %s",
      to_string(device)));
}

absl::StatusOr<DLDataType> dtype_to(DType dtype) {
  for (const TypeCode& known : kTypeCodes) {
    if (known.dtype == dtype) return DLDataType{known.code, known.bits, 1};
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "dlpack: the data type must be one of Kiln's: got %d", static_cast<int>(dtype)));
}

template <typename Managed>
absl::StatusOr<std::unique_ptr<Export<Managed>>> make_export(
    const Tensor& tensor,
    std::function<void()> release) {  // NOLINT(performance-unnecessary-value-param): it is moved
  if (tensor.strides.size() != tensor.shape.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "dlpack: there must be as many strides as dimensions: got strides %s for shape %s",
        to_string(tensor.strides), to_string(tensor.shape)));
  }
  auto out = std::make_unique<Export<Managed>>();
  DLTensor& to = out->managed.dl_tensor;
  KILN_ASSIGN_OR_RETURN(to.device, device_to(tensor.device));
  KILN_ASSIGN_OR_RETURN(to.dtype, dtype_to(tensor.dtype));
  out->shape = tensor.shape;
  out->strides = tensor.strides;
  to.data = tensor.data;
  to.ndim = tensor.shape.size();
  to.shape = &out->shape[0];
  to.strides = &out->strides[0];
  to.byte_offset = 0;
  out->managed.manager_ctx = out.get();
  out->managed.deleter = &Export<Managed>::destroy;
  out->release = std::move(release);
  return out;
}

}  // namespace

absl::StatusOr<Tensor> view_dlpack(const DLManagedTensor* managed) {
  if (managed == nullptr) return null_error();
  return tensor_from(managed->dl_tensor);
}

absl::StatusOr<Tensor> view_dlpack(const DLManagedTensorVersioned* managed) {
  if (managed == nullptr) return null_error();
  KILN_RETURN_IF_ERROR(check_version(*managed));  // before anything after the version is read
  return tensor_from(managed->dl_tensor);
}

absl::StatusOr<DlpackTensor> DlpackTensor::take(DLManagedTensor* managed) {
  DlpackTensor taken;
  KILN_ASSIGN_OR_RETURN(taken.tensor_, view_dlpack(managed));
  taken.plain_ = managed;
  return taken;
}

absl::StatusOr<DlpackTensor> DlpackTensor::take(DLManagedTensorVersioned* managed) {
  DlpackTensor taken;
  KILN_ASSIGN_OR_RETURN(taken.tensor_, view_dlpack(managed));
  taken.versioned_ = managed;
  taken.is_read_only_ = (managed->flags & dlpack::kReadOnly) != 0;
  return taken;
}

DlpackTensor::~DlpackTensor() {
  if (plain_ != nullptr && plain_->deleter != nullptr) plain_->deleter(plain_);
  if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
}

absl::StatusOr<DLManagedTensor*> to_dlpack(const Tensor& tensor, std::function<void()> release) {
  KILN_ASSIGN_OR_RETURN(auto out, make_export<DLManagedTensor>(tensor, std::move(release)));
  return &out.release()->managed;
}

absl::StatusOr<DLManagedTensorVersioned*> to_dlpack_versioned(const Tensor& tensor,
                                                              std::function<void()> release,
                                                              bool read_only) {
  KILN_ASSIGN_OR_RETURN(auto out,
                        make_export<DLManagedTensorVersioned>(tensor, std::move(release)));
  out->managed.version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  out->managed.flags = read_only ? dlpack::kReadOnly : 0;
  return &out.release()->managed;
}

}  // namespace kiln::inline v1
