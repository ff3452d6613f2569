#include "cli/needed_artifacts.h"

#include <kiln/runtime.h>

#include "cache/store.h"
#include "cli/session.h"
#include "runtime/call_json.h"
#include "runtime/tools.h"

#include <absl/strings/str_format.h>

#include <map>
#include <optional>
#include <set>

namespace kiln::cli {
namespace {

using Artifacts = std::map<cache::CompileKey, std::shared_ptr<const cache::Artifact>>;

absl::Status add_call(Runtime& runtime, const NamedCall& call, const Place& place, Artifacts& out,
                      std::set<std::string>& missing) {
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Op> op,
                        runtime.create_op(call.call.op, call.call.params));
  const ParsedCall here = internal::on_device(call.call, op->signature(), place.device);
  KILN_ASSIGN_OR_RETURN(const std::vector<tools::PlannedKernel> kernels,
                        tools::look_up_call(*op, here.args, place.device.type, place.facts));
  cache::Store& store = tools::store(runtime);
  for (const tools::PlannedKernel& kernel : kernels) {
    KILN_RETURN_IF_ERROR(kernel.selection.error);
    for (const tools::PlannedProgram& program : kernel.programs) {
      KILN_ASSIGN_OR_RETURN(std::optional<cache::Found> found, store.find(program.wanted));
      if (!found && program.tier) {
        KILN_ASSIGN_OR_RETURN(found, store.find_by_source(program.wanted));
      }
      if (found) {
        out[found->artifact->key] = found->artifact;
      } else {
        missing.insert(absl::StrFormat("%s on %s: no tier has %s for %s, key %s", call.name,
                                       place.name, program.program.source, program.target,
                                       to_hex(program.key)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<const cache::Artifact>>> needed_artifacts(
    Runtime& runtime, const CallSource& source, const DeviceArguments& devices) {
  KILN_ASSIGN_OR_RETURN(const std::vector<NamedCall> calls, read_call_file(runtime, source));
  Artifacts found;
  std::set<std::string> missing;
  for (const NamedCall& call : calls) {
    KILN_ASSIGN_OR_RETURN(const std::vector<Place> places,
                          places_of(runtime, devices, call.call.device));
    for (const Place& place : places) {
      const absl::Status status = add_call(runtime, call, place, found, missing);
      if (!status.ok()) missing.insert(call.name + " on " + place.name + ": " + reason_of(status));
    }
  }
  if (!missing.empty()) {
    std::string list;
    for (const std::string& one : missing) list += "\n  " + one;
    return absl::FailedPreconditionError(absl::StrFormat(
        "a pack must hold everything its calls need, got %d gaps; warm them first:%s",
        missing.size(), list));
  }
  std::vector<std::shared_ptr<const cache::Artifact>> out;
  for (auto& [key, artifact] : found) out.push_back(std::move(artifact));
  return out;
}

}  // namespace kiln::cli
