#ifndef KILN_CLI_RUN_CALL_H_
#define KILN_CLI_RUN_CALL_H_

#include <kiln/op.h>
#include <kiln/runtime.h>
#include <kiln/status.h>

#include "cli/roofline.h"
#include "runtime/call_json.h"
#include "runtime/compare.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::cli {

using internal::Difference;

struct RunOptions {
  bool check = true;
  std::uint64_t seed = 1;
};

// What a run of one call found out.
struct RunReport {
  // One for each kernel call of the plan.
  struct KernelRun {
    std::string interface, chosen, identity, identity_text;
    std::vector<std::string> keys;   // compile keys of its programs
    std::vector<std::string> tiers;  // where each was found: "built", "memory", "disk", ...
  };
  std::vector<KernelRun> kernels;
  std::string target;       // what served the call; "builtin" for the in-tree kernels
  double open_seconds = 0;  // until there is a stream on the device: its context, above all
  double fill_seconds = 0;  // the tensors
  double build_seconds = 0, load_seconds = 0, run_seconds = 0;
  double host_seconds = 0;  // all of it but opening the device, checking, and timing
  Roofline roofline;
  Floor floor;
  bool checked = false;
  std::string worst_tensor;
  Difference worst;
  double tolerance = 0;
  std::string failure;  // what beyond the values is wrong: bytes written beside a tensor
};

// Runs `call` once on `device` with random data, checks what it wrote, and times it.
absl::StatusOr<RunReport> run_call(Runtime& runtime, const internal::ParsedCall& call,
                                   const Device& device, const RunOptions& options);

}  // namespace kiln::cli

#endif  // KILN_CLI_RUN_CALL_H_
