#ifndef KILN_DEVICE_H_
#define KILN_DEVICE_H_

#include <kiln/export.h>
#include <kiln/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::inline v1 {

// The kind of a device: an open, interned name ("cuda", "cpu", "acme"). A small value; equal names
// are equal values anywhere in the process. Interning is thread-safe and nothing is ever removed.
class KILN_EXPORT DeviceType {
 public:
  constexpr DeviceType() = default;  // "cuda"
  // The type of that name; made if it is new. A name is lower-case letters, digits and '_', at most
  // 32 of them, and at most 250 names are known: InvalidArgument, ResourceExhausted.
  static absl::StatusOr<DeviceType> named(std::string_view name);
  std::string_view name() const;
  constexpr std::uint8_t id() const { return id_; }
  friend constexpr bool operator==(DeviceType, DeviceType) = default;

  static constexpr DeviceType cuda() { return DeviceType(0); }
  static constexpr DeviceType cpu() { return DeviceType(1); }

 private:
  explicit constexpr DeviceType(std::uint8_t id) : id_(id) {}
  std::uint8_t id_ = 0;
};

// One device: "cuda:1", "cpu:0". Index is the driver's ordinal, 0 to 254.
struct Device {
  DeviceType type{};
  std::uint8_t index = 0;
  friend constexpr bool operator==(const Device&, const Device&) = default;
};
KILN_EXPORT std::string to_string(const Device& device);
// "cuda", "cuda:0", "cpu". InvalidArgument otherwise, with the text received.
KILN_EXPORT absl::StatusOr<Device> parse_device(std::string_view text);

// The facts of a device that may change what is built. Two devices with equal facts share entries
// and artifacts.
struct DeviceFacts {
  int arch = 0;                  // 80, 86, 89, 90, 100, 120; 0 for a device type without archs
  int sm_count = 0;              // multiprocessors; for a cpu, hardware threads
  std::int64_t smem_budget = 0;  // bytes of shared memory one block may use (opt-in)
  std::string calibration;  // the board it is calibrated as: "h200"; for a cpu, the instruction set
                            // it is built for
  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};
KILN_EXPORT std::string to_string(const DeviceFacts& facts);

// A stream of a device: an opaque handle that the caller owns (for cuda a CUstream; null is the
// legacy default stream; for cpu null, where work runs before the call returns).
struct Stream {
  Device device{};
  void* handle = nullptr;
};

}  // namespace kiln::inline v1

#endif  // KILN_DEVICE_H_
