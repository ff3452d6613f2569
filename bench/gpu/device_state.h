#ifndef KILN_BENCH_GPU_DEVICE_STATE_H_
#define KILN_BENCH_GPU_DEVICE_STATE_H_

#include <kiln/status.h>

#include <memory>
#include <string>

namespace kiln::bench {

// Clocks, power and temperature of a device at one moment; what the driver does not tell is 0.
struct DeviceState {
  unsigned sm_mhz = 0, memory_mhz = 0;
  double watts = 0;
  unsigned celsius = 0;
  unsigned long long throttle_reasons = 0;  // NVML's bits
};

// NVML, opened at run time. Only reads. Thread-safe once open.
class Nvml {
 public:
  // Errors: FailedPrecondition: no library, or it does not know the device.
  static absl::StatusOr<std::unique_ptr<const Nvml>> open(const std::string& pci_bus_id);

  DeviceState state() const;
  std::string driver_version() const;

 private:
  Nvml() = default;

  void* device_ = nullptr;
  int (*clock_info_)(void*, int, unsigned*) = nullptr;
  int (*power_usage_)(void*, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*throttle_reasons_)(void*, unsigned long long*) = nullptr;
  int (*driver_version_)(char*, unsigned) = nullptr;
};

}  // namespace kiln::bench

#endif  // KILN_BENCH_GPU_DEVICE_STATE_H_
