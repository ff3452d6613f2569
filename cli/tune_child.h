#ifndef KILN_CLI_TUNE_CHILD_H_
#define KILN_CLI_TUNE_CHILD_H_

#include <kiln/tune.h>

#include "cli/session.h"
#include "runtime/call_json.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

// A sweep in a process of its own: a candidate that faults or hangs ends that process, and costs
// that candidate. The parent writes one JSON object to the child's input (the call, the device, the
// options) and reads JSON lines: {"progress":...} before anything that may not come back, and at
// last {"reports":[...]} or {"error":...}.
namespace kiln::cli {

struct SweepRequest {
  std::string call;  // JSON
  Device device;
  TuneOptions options;       // without callbacks
  double hang_seconds = 30;  // a candidate may run without a sign of life
};

struct SweepOutcome {
  absl::Status status;  // of the call as a whole
  Json reports = Json::array();
  int children = 0;  // processes it took
};

// Runs the sweeps of a call in child processes until one lives to the end. `progress` gets each
// line of progress, as JSON.
SweepOutcome sweep_in_children(SweepRequest request,
                               const std::function<void(const Json& progress)>& progress);

// The hidden subcommand that is the child.
void add_tune_child(CLI::App& app, Session& session);

}  // namespace kiln::cli

#endif  // KILN_CLI_TUNE_CHILD_H_
