#ifndef KILN_CLI_DEVICE_ARGUMENTS_H_
#define KILN_CLI_DEVICE_ARGUMENTS_H_

#include <kiln/device.h>
#include <kiln/runtime.h>
#include <kiln/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln::cli {

// --board, --arch, --sm-count, --smem and --device: for which devices something is to be answered
// or built.
struct DeviceArguments {
  std::vector<std::string> boards;
  std::vector<std::string> archs;
  std::optional<int> sm_count;
  std::optional<std::int64_t> smem;
  std::string device;
};
void add_device_options(CLI::App& command, DeviceArguments& arguments);

// A device that need not be here.
struct Place {
  std::string name;  // "h200", "cpu:0"
  Device device;
  DeviceFacts facts;
};

// The places that were named, each once; a device named by --device (or else by the call, `stated`)
// is asked for its facts. InvalidArgument: none is named, or a board or arch that is not known.
absl::StatusOr<std::vector<Place>> places_of(Runtime& runtime, const DeviceArguments& arguments,
                                             const std::optional<Device>& stated);

}  // namespace kiln::cli

#endif  // KILN_CLI_DEVICE_ARGUMENTS_H_
