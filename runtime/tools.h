#ifndef KILN_RUNTIME_TOOLS_H_
#define KILN_RUNTIME_TOOLS_H_

#include <kiln/op.h>
#include <kiln/runtime.h>

#include "cache/artifact.h"
#include "cache/store.h"

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <optional>
#include <string>
#include <vector>

// What the command line asks of an op beyond its public interface: what a call would do on a device
// that need not be here. None of it touches a device.
namespace kiln::tools {

// Fills `args.outputs` with what the inputs lead to, contiguous and aligned to 16 bytes, where they
// are not given.
KILN_EXPORT absl::Status complete_outputs(const Op& op, CallArgs& args);

// One program of a kernel.
struct PlannedProgram {
  Program program;
  std::string target;
  cache::CompileKey key;
  std::optional<cache::TierKind> tier;  // where its artifact is; nullopt: nowhere
  cache::Artifact wanted;               // the fields that make `key`
};

// One kernel call of a plan, on a device with given facts.
struct PlannedKernel {
  std::string interface;
  std::string call;  // as text
  Selection selection;
  BuildIdentity identity;  // of the chosen implementation
  Config config;
  std::vector<PlannedProgram> programs;  // empty where nothing is chosen
};

// The kernel calls of a call with `args` on a device of `type` with `facts`. `look_up` also looks
// for the programs' artifacts (needs the compiler, to know its id). Errors: those of Op::plan; a
// kernel call that no implementation serves is in its `selection.error`.
KILN_EXPORT absl::StatusOr<std::vector<PlannedKernel>> explain_call(Op& op, const CallArgs& args,
                                                                    DeviceType type,
                                                                    const DeviceFacts& facts,
                                                                    bool look_up);

// The same as a process would look that may not compile: without the compiler, or where its own
// artifact is not there, one that another compiler made of the same source counts. A `key` then has
// its first half only.
KILN_EXPORT absl::StatusOr<std::vector<PlannedKernel>> look_up_call(Op& op, const CallArgs& args,
                                                                    DeviceType type,
                                                                    const DeviceFacts& facts);

// One program that was asked for.
struct WarmedProgram {
  cache::CompileKey key;
  std::string source;
  std::optional<cache::TierKind> found_in;  // nullopt: compiled now
  absl::Duration seconds;
};
struct WarmedKernel {
  std::string interface;
  std::string key;       // of the implementation
  std::string identity;  // hash
  std::vector<WarmedProgram> programs;
};

// Compiles (or finds) all programs of a call for a device of `type` with `facts`, in the
// configuration of the stored winner of a sweep, else the default one. Errors: those of Op::plan,
// selection and compilation.
KILN_EXPORT absl::StatusOr<std::vector<WarmedKernel>> warm_call(Op& op, const CallArgs& args,
                                                                DeviceType type,
                                                                const DeviceFacts& facts);

// Compiles, loads and puts in force another configuration of a kernel that is loaded on `device`.
// Calls that run meanwhile use the old one or the new one.
KILN_EXPORT absl::Status load_config(Runtime& runtime, Kernel& kernel, const Device& device,
                                     const Config& config);

// The process's cache and its counters, for `kiln cache` and `kiln doctor`.
KILN_EXPORT cache::Store& store(Runtime& runtime);

}  // namespace kiln::tools

#endif  // KILN_RUNTIME_TOOLS_H_
