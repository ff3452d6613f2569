#ifndef KILN_CLI_NEEDED_ARTIFACTS_H_
#define KILN_CLI_NEEDED_ARTIFACTS_H_

#include "cache/artifact.h"
#include "cli/call_arguments.h"
#include "cli/device_arguments.h"

#include <absl/status/statusor.h>

#include <memory>
#include <vector>

namespace kiln::cli {

// What the calls of a file need on the devices named, in their default configurations, from
// whatever tier has it. Where there is no compiler, what another one made of the same source
// counts. FailedPrecondition lists what no tier has and the calls that cannot be served.
absl::StatusOr<std::vector<std::shared_ptr<const cache::Artifact>>> needed_artifacts(
    Runtime& runtime, const CallSource& source, const DeviceArguments& devices);

}  // namespace kiln::cli

#endif  // KILN_CLI_NEEDED_ARTIFACTS_H_
