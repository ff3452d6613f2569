#include "bench/gpu/device_state.h"

#include <absl/strings/str_format.h>

#include <array>
#include <dlfcn.h>

namespace kiln::bench {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
// NVML's own numbers: its header comes with the toolkit only in part of the installs.
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;

template <class F>
bool find(void* library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  return function != nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Nvml>> Nvml::open(const std::string& pci_bus_id) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return absl::FailedPreconditionError(absl::StrFormat("nvml: %s could not be opened", kLibrary));
  int (*init)() = nullptr;
  int (*by_bus_id)(const char*, void**) = nullptr;
  std::unique_ptr<Nvml> nvml(new Nvml);
  if (!find(library, "nvmlInit_v2", init) ||
      !find(library, "nvmlDeviceGetHandleByPciBusId_v2", by_bus_id) ||
      !find(library, "nvmlDeviceGetClockInfo", nvml->clock_info_) ||
      !find(library, "nvmlDeviceGetPowerUsage", nvml->power_usage_) ||
      !find(library, "nvmlDeviceGetTemperature", nvml->temperature_) ||
      !find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", nvml->throttle_reasons_) ||
      !find(library, "nvmlSystemGetDriverVersion", nvml->driver_version_))
    return absl::FailedPreconditionError(absl::StrFormat("nvml: %s lacks a function", kLibrary));
  int error = init();
  if (error == 0) error = by_bus_id(pci_bus_id.c_str(), &nvml->device_);
  if (error != 0)
    return absl::FailedPreconditionError(
        absl::StrFormat("nvml: must know the device %s: got error %d", pci_bus_id, error));
  return std::unique_ptr<const Nvml>(std::move(nvml));
}

DeviceState Nvml::state() const {
  DeviceState state;
  unsigned milliwatts = 0;
  (void)clock_info_(device_, kClockSm, &state.sm_mhz);
  (void)clock_info_(device_, kClockMemory, &state.memory_mhz);
  if (power_usage_(device_, &milliwatts) == 0) state.watts = milliwatts * 1e-3;
  (void)temperature_(device_, kTemperatureGpu, &state.celsius);
  (void)throttle_reasons_(device_, &state.throttle_reasons);
  return state;
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  return driver_version_(text.data(), static_cast<unsigned>(text.size())) == 0 ? text.data() : "";
}

}  // namespace kiln::bench
