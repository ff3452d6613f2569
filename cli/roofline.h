#ifndef KILN_CLI_ROOFLINE_H_
#define KILN_CLI_ROOFLINE_H_

#include <kiln/device_support.h>
#include <kiln/op.h>

#include <cstddef>
#include <string>

namespace kiln::cli {

// About the least time that a device needs for a call: that of a copy which moves as many bytes,
// measured, or that of its flops at the board's peak, where the board is one of the table.
struct Floor {
  double seconds = 0;  // 0: not known
  std::string text;    // which of the two, with its rate
};

// Each copy begins with a cold cache where `flush_bytes` are given (DeviceSupport::measure).
// Trouble, such as no room for a copy, leaves that part out.
Floor floor_of(DeviceSupport& support, const Stream& stream, const Roofline& roofline,
               const CallArgs& args, std::size_t flush_bytes);

}  // namespace kiln::cli

#endif  // KILN_CLI_ROOFLINE_H_
