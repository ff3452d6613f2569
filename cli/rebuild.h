#ifndef KILN_CLI_REBUILD_H_
#define KILN_CLI_REBUILD_H_

#include <kiln/compiler.h>
#include <kiln/runtime.h>
#include <kiln/status.h>

#include "cache/artifact.h"

#include <string_view>

namespace kiln::cli {

// What `artifact` was compiled from: it holds all of it.
CompileRequest request_of(const cache::Artifact& artifact);

// The compiler of the devices that `target` is for.
absl::StatusOr<const Compiler*> compiler_for(Runtime& runtime, std::string_view target);

}  // namespace kiln::cli

#endif  // KILN_CLI_REBUILD_H_
