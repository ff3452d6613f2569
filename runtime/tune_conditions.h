#ifndef KILN_RUNTIME_TUNE_CONDITIONS_H_
#define KILN_RUNTIME_TUNE_CONDITIONS_H_

#include <kiln/device_support.h>
#include <kiln/kernel.h>

#include "runtime/runtime_impl.h"
#include "runtime/tune_record.h"

#include <absl/status/statusor.h>

#include <optional>
#include <vector>

// Stored winners: which one holds here, and the configuration that a kernel gets.
namespace kiln::internal {

// The configurations a sweep tries, each once, the default first. Empty: the kernel does not tune.
std::vector<Config> configs_of(const Kernel& kernel, const DeviceFacts& facts);

absl::StatusOr<TuneConditions> tune_conditions(Runtime::Impl& runtime, DeviceSupport& support,
                                               const Kernel& kernel, const DeviceFacts& facts,
                                               const std::vector<Config>& configs);

// The stored record for `key`, if there is one that holds here; one that does not is told in the
// log, once, with the reason. `KILN_TUNED=off`: none.
std::optional<TuneRecord> find_record(Runtime::Impl& runtime, DeviceSupport& support,
                                      const Kernel& kernel, const TuneKey& key);

// The kernel's own; Internal where its code throws.
absl::StatusOr<Config> default_config(const Kernel& kernel, const DeviceFacts& facts);

// The configuration for `kernel`: the stored winner, else the default. Touches no device.
absl::StatusOr<Config> config_in_force(Runtime::Impl& runtime, DeviceSupport& support,
                                       const Kernel& kernel, const TuneKey& key);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_CONDITIONS_H_
