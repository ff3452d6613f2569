#ifndef KILN_RUNTIME_TUNE_SWEEP_H_
#define KILN_RUNTIME_TUNE_SWEEP_H_

#include <kiln/tune.h>

#include "runtime/runtime_impl.h"
#include "runtime/tune_call.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kiln::internal {

// What is swept: one kernel of an entry, measured in the call that it serves.
struct SweepSubject {
  Runtime::Impl& runtime;
  DeviceSupport& support;
  Device device;
  DeviceFacts facts;
  CompilePolicy policy;
  const Signature& signature;
  const CallArgs& args;
  Kernel& kernel;
  std::vector<Kernel*> kernels;  // all that the call runs, `kernel` among them; loaded on `device`
  // Enqueues the call on a stream of the sweep.
  std::function<absl::Status(const Stream& stream, std::span<const Tensor* const> inputs,
                             std::span<const Tensor* const> outputs)>
      run;
};

// Sweeps `configs`, of which the first is the default, and fills `report` from its status on. What
// is in force stays in force: whoever asked publishes the winner. One sweep at a time for a kernel
// and a device.
void sweep(const SweepSubject& subject, const std::vector<Config>& configs,
           const TuneOptions& options, TuneReport& report);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_SWEEP_H_
