#include <kiln/device_support.h>

#include <absl/strings/str_format.h>

namespace kiln::inline v1 {

absl::Status DeviceSupport::copy_strided(const Stream& stream, void*, const Tensor& from) {
  return absl::UnimplementedError(absl::StrFormat(
      "%s: no strided copy: want a contiguous tensor, got shape %s with strides %s",
      std::string(stream.device.type.name()), to_string(from.shape), to_string(from.strides)));
}

}  // namespace kiln::inline v1
