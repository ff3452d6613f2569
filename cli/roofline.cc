#include "cli/roofline.h"

#include "runtime/boards.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln::cli {
namespace {

constexpr int kTries = 3;
constexpr int kCopies = 5;  // of one try

// The least of a few copies of `bytes`, each of which moves twice as many.
absl::StatusOr<double> copy_seconds(DeviceSupport& support, const Stream& stream, std::size_t bytes,
                                    std::size_t flush_bytes) {
  if (bytes == 0) return 0.0;
  KILN_ASSIGN_OR_RETURN(void* const memory, support.allocate(stream, 2 * bytes));
  const auto copy = [&] {
    return support.copy_on_device(stream, static_cast<char*>(memory) + bytes, memory, bytes);
  };
  absl::Status status = copy();  // from here on the pages are there
  double least = 0;
  for (int i = 0; i < kTries && status.ok(); ++i) {
    const absl::StatusOr<double> seconds = support.measure(stream, copy, kCopies, flush_bytes);
    status = seconds.status();
    if (seconds.ok() && (i == 0 || *seconds < least)) least = *seconds;
  }
  status.Update(support.free(stream, memory));
  if (!status.ok()) return status;
  return least;
}

bool has_byte_elements(const CallArgs& args) {
  return std::any_of(args.inputs.begin(), args.inputs.end(),
                     [](const auto& arg) { return arg && size_of(arg->spec.dtype) == 1; });
}

}  // namespace

Floor floor_of(DeviceSupport& support, const Stream& stream, const Roofline& roofline,
               const CallArgs& args, std::size_t flush_bytes) {
  const double copy =
      copy_seconds(support, stream, static_cast<std::size_t>(roofline.bytes / 2), flush_bytes)
          .value_or(0);
  const absl::StatusOr<DeviceFacts> facts = support.facts(stream.device.index);
  const double peak = facts.ok() ? peak_flops(facts->calibration, has_byte_elements(args)) : 0;
  const double compute = peak > 0 ? roofline.flops / peak : 0;
  Floor floor{std::max(copy, compute), ""};
  if (compute > copy) {
    floor.text = absl::StrFormat("%.4g GFLOP at the board's %.4g TFLOP/s", roofline.flops * 1e-9,
                                 peak * 1e-12);
  } else if (copy > 0) {
    floor.text = absl::StrFormat("a copy that moves %.4g MB, measured at %.4g GB/s",
                                 roofline.bytes * 1e-6, roofline.bytes / copy * 1e-9);
  }
  return floor;
}

}  // namespace kiln::cli
