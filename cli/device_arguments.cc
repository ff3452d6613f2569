#include "cli/device_arguments.h"

#include "cli/validators.h"
#include "runtime/boards.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>

namespace kiln::cli {
namespace {

// Beyond any device there is, and below what arithmetic of a kernel would not stand.
constexpr std::int64_t kMostSms = 1024, kMostSmem = 1 << 20;

bool is_board_name(std::string_view name) {
  return std::any_of(boards().begin(), boards().end(),
                     [&](const Board& board) { return board.name == name; });
}

// `facts` with --sm-count and --smem in force.
DeviceFacts adjusted(DeviceFacts facts, const DeviceArguments& arguments) {
  if (arguments.sm_count && *arguments.sm_count != facts.sm_count) {
    facts.sm_count = *arguments.sm_count;
    facts.calibration = calibrate("", 0, facts.sm_count, facts.arch);
  }
  if (arguments.smem) facts.smem_budget = *arguments.smem;
  return facts;
}

absl::Status add_place(std::vector<Place>& places, const std::string& name,
                       const DeviceArguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const DeviceFacts board, board_facts(name));
  const DeviceFacts facts = adjusted(board, arguments);
  const bool known = std::any_of(places.begin(), places.end(),
                                 [&](const Place& place) { return place.facts == facts; });
  if (!known) places.push_back({facts.calibration, Device{}, facts});
  return absl::OkStatus();
}

}  // namespace

void add_device_options(CLI::App& command, DeviceArguments& arguments) {
  command
      .add_option("--board", arguments.boards, "boards, as h200 or a100,h200; none need be here")
      ->type_name("BOARD")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--arch", arguments.archs,
                  "archs, as 90, sm_90 or sm_90a: their reference boards")
      ->type_name("ARCH")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--sm-count", arguments.sm_count, "multiprocessors, in place of the board's")
      ->type_name("N")
      ->check(between(1, kMostSms));
  command
      .add_option("--smem", arguments.smem,
                  "bytes of shared memory a block may use, in place of the board's")
      ->type_name("BYTES")
      ->check(between(1, kMostSmem));
  command.add_option("--device", arguments.device, "a device that is here, as cuda:0 or cpu")
      ->type_name("DEVICE");
}

absl::StatusOr<std::vector<Place>> places_of(Runtime& runtime, const DeviceArguments& arguments,
                                             const std::optional<Device>& stated) {
  if ((arguments.sm_count || arguments.smem) && arguments.boards.empty() &&
      arguments.archs.empty()) {
    return absl::InvalidArgumentError(
        "--sm-count and --smem must go with --board or --arch: a device that is here has its own");
  }
  std::vector<Place> places;
  for (const std::string& board : arguments.boards)
    KILN_RETURN_IF_ERROR(add_place(places, board, arguments));
  for (const std::string& arch : arguments.archs) {
    if (is_board_name(arch)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--arch must be an arch, as 90, sm_90 or sm_90a: got the board %s; use --board", arch));
    }
    KILN_RETURN_IF_ERROR(add_place(places, arch, arguments));
  }
  if (!arguments.device.empty() || (places.empty() && stated)) {
    Device device = stated.value_or(Device{});
    if (!arguments.device.empty()) {
      KILN_ASSIGN_OR_RETURN(device, parse_device(arguments.device));
    }
    KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime.device_support(device.type));
    KILN_ASSIGN_OR_RETURN(DeviceFacts facts, support->facts(device.index));
    places.push_back({to_string(device), device, facts});
  }
  if (places.empty()) {
    return absl::InvalidArgumentError(
        "a device must be named: want --board, --arch or --device, got none");
  }
  return places;
}

}  // namespace kiln::cli
