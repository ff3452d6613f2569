#include <kiln/device_support.h>

#include <absl/strings/str_format.h>

namespace kiln::inline v1 {

absl::Status DeviceSupport::copy_strided(const Stream& stream, void*, const Tensor& from) {
  return absl::UnimplementedError(absl::StrFormat(
      "%s: no strided copy: want a contiguous tensor, got shape %s with strides %s",
      std::string(stream.device.type.name()), to_string(from.shape), to_string(from.strides)));
}

absl::StatusOr<double> DeviceSupport::measure(const Stream& stream,
                                              const std::function<absl::Status()>& body,
                                              int repeats, std::size_t flush_bytes) {
  if (flush_bytes == 0) {
    KILN_ASSIGN_OR_RETURN(const double seconds, time(stream, [&]() -> absl::Status {
                            for (int i = 0; i < repeats; ++i) KILN_RETURN_IF_ERROR(body());
                            return absl::OkStatus();
                          }));
    return seconds / repeats;
  }
  KILN_ASSIGN_OR_RETURN(void* const memory, allocate(stream, flush_bytes));
  double sum = 0;
  absl::Status status;
  for (int i = 0; i < repeats && status.ok(); ++i) {
    status = fill(stream, memory, static_cast<std::uint8_t>(i), flush_bytes);
    if (!status.ok()) break;
    const absl::StatusOr<double> seconds = time(stream, body);
    status = seconds.status();
    if (status.ok()) sum += *seconds;
  }
  status.Update(free(stream, memory));
  KILN_RETURN_IF_ERROR(status);
  return sum / repeats;
}

}  // namespace kiln::inline v1
