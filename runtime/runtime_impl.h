#ifndef KILN_RUNTIME_RUNTIME_IMPL_H_
#define KILN_RUNTIME_RUNTIME_IMPL_H_

#include <kiln/op.h>
#include <kiln/runtime.h>

#include "base/mutex.h"
#include "base/trace.h"
#include "cache/store.h"
#include "cache/tuning_files.h"
#include "jit/engine.h"
#include "jit/worker_compiler.h"
#include "runtime/call_recorder.h"
#include "runtime/modules.h"
#include "runtime/registry_contents.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::inline v1 {

// What a Runtime holds. The registered rows only ever grow, and what they name is never moved.
struct Runtime::Impl {
  explicit Impl(RuntimeOptions runtime_options);

  // Facts of a device, asked of its driver once. As DeviceSupport::facts.
  absl::StatusOr<DeviceFacts> facts(DeviceSupport& support, const Device& device);

  // Compiles (or finds) and loads what `kernel` needs on a device with `config`, and publishes it.
  // `who` names the implementation and identity in errors.
  absl::Status load_kernel(Kernel& kernel, DeviceSupport& support, const Device& device,
                           const DeviceFacts& facts, const Config& config, CompilePolicy policy,
                           const std::string& who);

  // Whether all that `kernel` needs on a device with `config` is loaded there already, for another
  // op. Compiles and loads nothing.
  bool is_loaded(Kernel& kernel, DeviceSupport& support, const Device& device,
                 const DeviceFacts& facts, const Config& config);

  // Asks all detectors for `device`: the one target that claims it, "" for none, AmbiguousTarget
  // for several.
  absl::StatusOr<std::string> detect_target(const Device& device);
  // The builder of `target` for `op`; null when it has none.
  const BuildTargetKernel* builder(const std::string& op, const std::string& target);
  bool knows_target(const std::string& target);
  std::string known_targets();

  const RuntimeOptions options;
  jit::Sources sources;
  std::unique_ptr<cache::Store> store;
  const cache::TuningFiles records;                        // of tuning sweeps
  const std::unique_ptr<Trace> trace;                      // null: none is written
  const std::unique_ptr<internal::CallRecorder> recorder;  // null: no calls are recorded
  jit::Engine engine;
  internal::Modules modules;
  const jit::WorkerCompiler* workers = nullptr;  // owned by CUDA's device support; null: none
  const std::int64_t owner = ::getpid();         // the process that may build with this

  mutable Mutex mutex;
  std::map<std::string, std::unique_ptr<OpType>> ops ABSL_GUARDED_BY(mutex);
  std::map<std::string, Reference> references ABSL_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<KernelRow>> kernels ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::shared_ptr<DeviceSupport>> supports ABSL_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<DetectorRow>> detectors ABSL_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<BuilderRow>> builders ABSL_GUARDED_BY(mutex);
  std::string default_target ABSL_GUARDED_BY(mutex);
  std::vector<LoadFailure> failures ABSL_GUARDED_BY(mutex);
  std::map<std::pair<int, int>, DeviceFacts> known_facts ABSL_GUARDED_BY(mutex);
  std::once_flag backends_once;

  std::atomic<std::int64_t> selections{0}, entries_built{0}, entries_dropped{0}, input_copies{0},
      fact_reads{0}, stand_ins{0}, sweeps{0}, tuned_loads{0};
  Mutex sweeping;  // held by the one sweep of this process that measures
};

}  // namespace kiln::inline v1

#endif  // KILN_RUNTIME_RUNTIME_IMPL_H_
