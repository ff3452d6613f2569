#ifndef KILN_CLI_WARM_JOBS_H_
#define KILN_CLI_WARM_JOBS_H_

#include <kiln/op.h>
#include <kiln/runtime.h>

#include "cli/call_arguments.h"
#include "cli/device_arguments.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "runtime/tools.h"

#include <absl/status/status.h>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// What `kiln warm` builds and `kiln check` looks for: the distinct kernels that calls need on the
// places they are to run.
namespace kiln::cli {

// A call that could not be planned, or whose kernels could not be built.
struct WarmFailure {
  const NamedCall* call = nullptr;
  const Place* place = nullptr;
  absl::Status status;
};

// A program that is wanted, and where it is: nullopt: nowhere.
struct WarmProgram {
  cache::CompileKey key;
  std::optional<cache::TierKind> tier;
  std::string source, target;  // "" where it was built
};
// One distinct (implementation, identity, device facts).
struct WarmKernel {
  std::string key, identity;
  std::vector<WarmProgram> programs;
};

// The kernel calls of one call that no call before it needs.
struct WarmJob {
  const NamedCall* call = nullptr;
  const Place* place = nullptr;
  Op* op = nullptr;
  CallArgs args;
  std::string label;                // "layer_norm for h200, calls.jsonl:3"
  std::vector<std::string> wanted;  // identities that this job is the first to need
  bool is_done = false;
  std::vector<WarmKernel> kernels;  // those wanted, after the job
  absl::Status status;
};

// What is done about each kernel: it is built, or looked for as a process would that may compile,
// or as one that may not (tools::look_up_call).
enum class WarmMode { build, look, look_as_under_forbid };

// One thread at a time. The calls must outlive it.
class WarmJobs {
 public:
  explicit WarmJobs(Runtime& runtime) : runtime_(runtime) {}

  // Plans all calls on all places that `arguments` name, or on the one that each call states.
  // Nothing is compiled. InvalidArgument: a place that is not known, or none.
  absl::Status plan(const std::vector<NamedCall>& calls, const DeviceArguments& arguments,
                    const Interrupt& interrupt);
  // Does what `mode` says for what the jobs want, `threads` at once. Building shows its progress.
  void run(int threads, WarmMode mode, const Interrupt& interrupt);

  const std::deque<WarmJob>& jobs() const { return jobs_; }
  const std::vector<WarmFailure>& failures() const { return failures_; }
  std::vector<std::string> place_names() const;

 private:
  absl::StatusOr<std::vector<const Place*>> places_for(const NamedCall& call,
                                                       const DeviceArguments& arguments);
  absl::StatusOr<Op*> op_for(const ParsedCall& call);
  absl::Status plan_one(const NamedCall& call, const Place& place);
  absl::Status do_job(WarmJob& job, WarmMode mode);

  Runtime& runtime_;
  std::map<std::string, std::vector<Place>> places_;  // by the device that calls state, or ""
  std::map<std::string, std::unique_ptr<Op>> ops_;    // by op and parameters
  std::set<std::tuple<std::string, std::string, std::string>> seen_;
  std::deque<WarmJob> jobs_;
  std::vector<WarmFailure> failures_;
};

// What was done, counted by identity: as built when one of its programs was compiled, as missing
// when one is nowhere and nothing was to be compiled, else by the slowest tier one came from. So
// identities = built + missing + all hits.
struct WarmSummary {
  std::size_t identities = 0, programs = 0, compiled = 0, built = 0, missing = 0, not_done = 0;
  std::map<cache::TierKind, std::size_t> hits;
};
WarmSummary summarise(const std::deque<WarmJob>& jobs, WarmMode mode);
// All tiers, also those without any.
Json hits_json(const WarmSummary& summary);

}  // namespace kiln::cli

#endif  // KILN_CLI_WARM_JOBS_H_
