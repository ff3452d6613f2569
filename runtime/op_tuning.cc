#include "runtime/op_tuning.h"

#include "base/log.h"
#include "base/trace.h"
#include "runtime/op_core.h"
#include "runtime/runtime_impl.h"
#include "runtime/tune_conditions.h"
#include "runtime/tune_json.h"
#include "runtime/tune_sweep.h"

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <optional>

namespace kiln::internal {
namespace {

double bytes_of(const CallArgs& args) {
  double bytes = 0;
  for (const auto* list : {&args.inputs, &args.outputs}) {
    for (const std::optional<ArgSpec>& arg : *list) {
      if (arg) bytes += static_cast<double>(numel(arg->spec.shape)) * size_of(arg->spec.dtype);
    }
  }
  return bytes;
}

cache::CompileKey lease_key(const std::string& name) {
  return {.source = hash128(name), .compiler = hash128("tuning")};
}

// All kernels of some entries, each once.
std::vector<Kernel*> kernels_of(std::span<const EntryRow* const> entries) {
  std::vector<Kernel*> kernels;
  for (const EntryRow* entry : entries) {
    for (Kernel* one : entry->kernel->kernels()) {
      if (std::find(kernels.begin(), kernels.end(), one) == kernels.end()) kernels.push_back(one);
    }
  }
  return kernels;
}

}  // namespace

TuneKey tune_key(const std::string& op, const EntryRow& entry, std::size_t ordinal) {
  return {op,
          entry.implementation->key,
          ordinal,
          entry.identity.hash(),
          std::string(entry.device_type.name()),
          entry.facts};
}

void OpTuning::request(const TuneOptions& options) {
  Problems problems;
  {
    MutexLock lock(mutex_);
    options_ = options;
    if (options.force) claimed_.clear();
    problems = problems_;
    all_.store(true, std::memory_order_relaxed);
  }
  for (const auto& [at, problem] : problems) tune_entry(*problem, *at.first, nullptr);
}

bool OpTuning::request(Kernel& kernel) {
  some_.store(true, std::memory_order_relaxed);
  Problems problems;
  {
    MutexLock lock(mutex_);
    problems = problems_;
  }
  bool tunes = false;
  for (const auto& dispatcher : core_.dispatchers()) {
    for (const EntryRow* entry : dispatcher->entries()) {
      const std::vector<Kernel*> owned = entry->kernel->kernels();
      if (std::find(owned.begin(), owned.end(), &kernel) != owned.end())
        tunes |= !configs_of(kernel, entry->facts).empty();
    }
  }
  for (const auto& [at, problem] : problems) tune_entry(*problem, *at.first, &kernel);
  return tunes;
}

void OpTuning::before_call(const CallArgs& args, const ParamValues& execution, const Device& device,
                           std::span<const void* const> kernels,
                           std::span<const EntryRow* const> entries) {
  const double bytes = bytes_of(args);
  std::vector<std::pair<std::shared_ptr<const Problem>, const EntryRow*>> wanted;
  const bool tunes = all_.load(std::memory_order_relaxed) || some_.load(std::memory_order_relaxed);
  {
    MutexLock lock(mutex_);
    std::shared_ptr<const Problem> fresh;
    for (const EntryRow* entry : entries) {
      std::shared_ptr<const Problem>& known = problems_[{entry, device.index}];
      if (known == nullptr || known->bytes < bytes) {
        if (fresh == nullptr) {
          fresh = std::make_shared<const Problem>(Problem{args,
                                                          execution,
                                                          device,
                                                          {kernels.begin(), kernels.end()},
                                                          {entries.begin(), entries.end()},
                                                          bytes});
        }
        known = fresh;
      }
      if (tunes) wanted.emplace_back(known, entry);
    }
  }
  for (const auto& [problem, entry] : wanted) tune_entry(*problem, *entry, nullptr);
}

std::vector<TuneReport> OpTuning::reports() const {
  MutexLock lock(mutex_);
  return reports_;
}

bool OpTuning::claim(const Kernel& kernel, int index) {
  MutexLock lock(mutex_);
  return claimed_.emplace(&kernel, index).second;
}

void OpTuning::tune_entry(const Problem& problem, const EntryRow& entry, const Kernel* only) {
  TuneOptions options;
  {
    MutexLock lock(mutex_);
    options = options_;
  }
  const std::vector<Kernel*> kernels = entry.kernel->kernels();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    Kernel& kernel = *kernels[i];
    if (only != nullptr && only != &kernel) continue;
    if (!requested() && !kernel.tuning_requested()) continue;
    if (claim(kernel, problem.device.index)) tune(problem, entry, i, kernel, options);
  }
}

void OpTuning::tune(const Problem& problem, const EntryRow& entry, std::size_t ordinal,
                    Kernel& kernel, const TuneOptions& options) {
  const std::vector<Config> configs = configs_of(kernel, entry.facts);
  if (configs.empty()) return;
  Runtime::Impl& runtime = core_.runtime().impl();
  const TuneKey key = tune_key(core_.signature().op, entry, ordinal);
  TuneReport report;
  report.op = key.op;
  report.implementation = key.implementation;
  report.identity = key.identity;
  report.identity_text = entry.identity.text();
  report.kernel = ordinal;
  report.device = problem.device;
  report.problem = problem_text(core_.signature(), problem.args);
  report.default_config = report.winner = configs.front();
  const absl::StatusOr<DeviceSupport*> support =
      core_.runtime().device_support(problem.device.type);
  report.status = support.status();
  if (support.ok()) {
    // One at a time: sweeps that ran beside each other would measure each other.
    MutexLock alone(runtime.sweeping);
    const TraceSpan span(runtime.trace.get(), "tune",
                         key.op + ": " + key.implementation + " " + report.identity_text);
    find_winner(problem, key, kernel, **support, configs, options, report);
    if (report.status.ok()) report.status = put_in_force(entry, kernel, **support, report.winner);
  }
  if (!report.status.ok()) {
    log(LogLevel::warning,
        absl::StrFormat("%s: %s %s is not tuned, its configuration stays: %s", key.op,
                        key.implementation, report.identity_text, message_of(report.status)));
  }
  if (options.progress) {
    options.progress({TuneProgress::Phase::done, report.op, report.implementation, "",
                      report.candidates.size(), report.candidates.size()});
  }
  MutexLock lock(mutex_);
  reports_.push_back(std::move(report));
}

void OpTuning::find_winner(const Problem& problem, const TuneKey& key, Kernel& kernel,
                           DeviceSupport& support, const std::vector<Config>& configs,
                           const TuneOptions& options, TuneReport& report) {
  Runtime::Impl& runtime = core_.runtime().impl();
  const std::string name = record_name(key);
  const auto stored = [&] { return runtime.records.find(name).value_or(std::nullopt); };
  const auto use = [&](const TuneRecord& record) {
    TuneReport found = record.report;
    found.device = report.device;
    found.from_record = true;
    report = std::move(found);
  };
  if (!options.force) {
    if (const auto record = find_record(runtime, support, kernel, key)) return use(*record);
  }
  const std::optional<std::string> before = stored();
  // Others that tune the same kernel for the same board wait for this sweep, and take its winner.
  const auto lease = runtime.store->lease(lease_key(name), absl::InfiniteFuture());
  if (!options.force || stored() != before) {
    if (const auto record = find_record(runtime, support, kernel, key)) return use(*record);
  }
  const SweepSubject subject{
      runtime,
      support,
      problem.device,
      key.facts,
      core_.policy(),
      core_.signature(),
      problem.args,
      kernel,
      kernels_of(problem.entries),
      [this, &problem](const Stream& stream, std::span<const Tensor* const> inputs,
                       std::span<const Tensor* const> outputs) {
        return core_.execute(CallView(stream, inputs, outputs, problem.kernels, problem.execution));
      }};
  runtime.sweeps.fetch_add(1, std::memory_order_relaxed);
  sweep(subject, configs, options, report);
  if (!report.status.ok()) return;
  // Where machines share a store that keeps no leases another may have been first. And a sweep that
  // was asked for again but was cut short replaces none that was not.
  if (!options.agree && (!options.force || !report.complete)) {
    const auto record = find_record(runtime, support, kernel, key);
    if (record && (!options.force || record->report.complete)) return use(*record);
  }
  if (options.agree) {
    const Config agreed = options.agree(report);
    if (std::find(configs.begin(), configs.end(), agreed) == configs.end()) {
      report.status = absl::InvalidArgumentError(
          absl::StrFormat("what all ranks agree on must be a configuration of the kernel: got %s",
                          to_string(agreed)));
      return;
    }
    report.winner = agreed;
  }
  if (!options.store) return;
  absl::StatusOr<TuneConditions> conditions =
      tune_conditions(runtime, support, kernel, key.facts, configs);
  report.status = conditions.status();
  if (!conditions.ok()) return;
  report.status = runtime.records.put(name, record_to_json({key, *std::move(conditions), report}));
}

absl::Status OpTuning::put_in_force(const EntryRow& entry, Kernel& kernel, DeviceSupport& support,
                                    const Config& winner) {
  // On every device where it is loaded: the cards of an entry are alike.
  for (int index = 0; index < kMaxDevices; ++index) {
    const Loaded* loaded = kernel.loaded_on(index);
    if (loaded == nullptr || loaded->config == winner) continue;
    KILN_RETURN_IF_ERROR(core_.runtime().impl().load_kernel(
        kernel, support, Device{entry.device_type, static_cast<std::uint8_t>(index)}, entry.facts,
        winner, core_.policy(),
        absl::StrFormat("%s: %s %s", core_.signature().op, entry.implementation->key,
                        entry.identity.text())));
  }
  return absl::OkStatus();
}

}  // namespace kiln::internal
