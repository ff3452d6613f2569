#ifndef KILN_RUNTIME_BOARDS_H_
#define KILN_RUNTIME_BOARDS_H_

#include <kiln/device.h>
#include <kiln/export.h>
#include <kiln/status.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

// A board is a named set of device facts: what `--board h200` means on a machine without one, and
// what a device is calibrated as. All functions here are pure and thread-safe.
struct Board {
  std::string_view name;  // "h200": the calibration of its facts
  int arch = 0;
  int sm_count = 0;
  double memory_min_gib = 0;  // the range in which the driver's total memory of such a board lies
  double memory_max_gib = 0;
  std::string_view
      device_name;  // words that the driver's device name must hold, in any order: "H100 PCIe"
  double matrix_tflops = 0;  // dense products of 16-bit elements, by the data sheet; 0: not known
};

// The shipped table, in the order in which `kiln` lists it.
KILN_EXPORT std::span<const Board> boards();

// Bytes of shared memory one block may use on `arch` after opting in; 0 for an arch that is not
// known.
KILN_EXPORT std::int64_t smem_budget_of(int arch);

KILN_EXPORT DeviceFacts facts_of(const Board& board);

// Flops a second that nothing on that board exceeds: those of its products of 16-bit elements, or
// of elements of one byte. 0: not known, as of slices of a board.
KILN_EXPORT double peak_flops(std::string_view board, bool bytes);

// The board of that name, or the reference board of an arch: "90", "sm_90" and "sm_90a" are the
// same board. Errors: InvalidArgument, with the names and archs that are known.
KILN_EXPORT absl::StatusOr<DeviceFacts> board_facts(std::string_view name_or_arch);

// The same for an arch as a number. Reference boards: 80 a100, 86 a10, 89 l40s, 90 h200, 100 b200,
// 120 rtx5090: of each arch the server board that is bought most for serving (for 120 there is
// none) and for 90 the one that the shipped figures and stored winners were measured on; an h100
// has the same number of multiprocessors.
KILN_EXPORT absl::StatusOr<DeviceFacts> reference_facts(int arch);

// What a device is calibrated as, from what the driver says of it:
//   a board of the table        its name, when device name, arch, multiprocessors and memory all
//   fit: "h200" a MIG slice of such a board "<board>-mig-<profile>", "h200-mig-1g.18gb" (the
//   slice's own multiprocessors and
//                               memory are not compared)
//   any other device            "sm_<arch>-<multiprocessors>sm", "sm_90-114sm"
KILN_EXPORT std::string calibrate(std::string_view device_name, std::uint64_t memory_bytes,
                                  int sm_count, int arch);

}  // namespace kiln

#endif  // KILN_RUNTIME_BOARDS_H_
