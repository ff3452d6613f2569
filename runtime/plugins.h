#ifndef KILN_RUNTIME_PLUGINS_H_
#define KILN_RUNTIME_PLUGINS_H_

#include <kiln/runtime.h>

#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace kiln::internal {

// Shared objects to open: those that `options.backend_path` names (files, or all *.so of a folder,
// by name), then those of the install folder. One file found twice is listed once.
KILN_EXPORT std::vector<std::string> find_plugins(const RuntimeOptions& options);
// <folder of libkiln>/kiln/backends; empty when it cannot be told.
KILN_EXPORT std::string install_backend_dir();

// True when `options.disabled_backends` names the file: by its path, its file name, or any part of
// the file name that stands between "_", "-" and "." ("acme" names libacme.so and kiln_acme.so).
KILN_EXPORT bool is_disabled(const RuntimeOptions& options, const std::string& file);

// Opens one plugin and lets it fill a registry of its own. Nothing of a plugin that fails is kept,
// but the object stays open: its code may have started threads. Errors: FailedPrecondition, with
// the reason: cannot be opened, no kiln_plugin, another ABI, its function failed or threw.
KILN_EXPORT absl::StatusOr<Registry> open_plugin(const std::string& file);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_PLUGINS_H_
