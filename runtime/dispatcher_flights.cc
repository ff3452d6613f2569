// The second part of Dispatcher: builds, each once, here or in the background.
#include "base/log.h"
#include "runtime/dispatcher.h"
#include "runtime/guarded.h"
#include "runtime/runtime_impl.h"
#include "runtime/tune_conditions.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <optional>
#include <unistd.h>
#include <utility>

namespace kiln::internal {

Dispatcher::~Dispatcher() {
  // In a forked child the threads that would end the jobs do not exist.
  if (::getpid() != runtime_.owner) return;
  MutexLock lock(mutex_);
  closing_ = true;
  while (in_background_ > 0) quiet_.wait(mutex_);
}

std::shared_ptr<Dispatcher::Flight> Dispatcher::find_flight(const Wanted& wanted) {
  const auto at = std::find_if(flights_.begin(), flights_.end(), [&](const auto& f) {
    return f->wanted.row == wanted.row && f->wanted.plan.identity == wanted.plan.identity &&
           f->wanted.device.type == wanted.device.type && f->wanted.facts == wanted.facts;
  });
  return at == flights_.end() ? nullptr : *at;
}

TuneKey Dispatcher::key_of(const Wanted& wanted, std::size_t ordinal) const {
  return {candidates_.op,
          wanted.row->key,
          ordinal,
          wanted.plan.identity.hash(),
          std::string(wanted.device.type.name()),
          wanted.facts};
}

std::shared_ptr<const EntryRow> Dispatcher::entry_of_loaded(const Wanted& wanted) {
  const std::string who =
      absl::StrFormat("%s: %s %s", candidates_.op, wanted.row->key, wanted.plan.identity.text());
  std::unique_ptr<Kernel> fresh;
  const absl::Status made = guarded(who + ": the build function", [&] {
    fresh = wanted.plan.build();
    return absl::OkStatus();
  });
  if (!made.ok() || fresh == nullptr) return nullptr;
  const std::vector<Kernel*> kernels = fresh->kernels();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const absl::StatusOr<Config> config =
        config_in_force(runtime_, *wanted.support, *kernels[i], key_of(wanted, i));
    if (!config.ok() ||
        !runtime_.is_loaded(*kernels[i], *wanted.support, wanted.device, wanted.facts, *config))
      return nullptr;
    kernels[i]->set_tuner(tuner_);
    const absl::Status loaded =
        runtime_.load_kernel(*kernels[i], *wanted.support, wanted.device, wanted.facts, *config,
                             CompilePolicy::forbid, who);
    if (!loaded.ok()) return nullptr;
  }
  Rows dropped;
  MutexLock lock(mutex_);
  if (std::shared_ptr<const EntryRow> entry = find_entry(wanted)) return entry;
  // Whoever builds it will add it.
  return find_flight(wanted) != nullptr ? nullptr : add_entry(wanted, std::move(fresh), dropped);
}

Dispatcher::Joined Dispatcher::join(const Wanted& wanted, const MissOptions& options) {
  MutexLock lock(mutex_);
  std::shared_ptr<EntryRow> entry = find_entry(wanted);
  if (entry != nullptr && entry->kernel->loaded_on(wanted.device.index) != nullptr) return {entry};
  if (std::shared_ptr<Flight> under_way = find_flight(wanted)) return {nullptr, under_way};
  if (options.capturing) return {};
  auto flight = std::make_shared<Flight>();
  flight->wanted = wanted;
  flight->policy = options.policy;
  flight->entry = std::move(entry);
  flights_.push_back(flight);
  return {nullptr, std::move(flight), true};
}

absl::StatusOr<std::shared_ptr<const EntryRow>> Dispatcher::built_entry(
    const Wanted& wanted, const MissOptions& options) {
  const absl::Time deadline = absl::Now() + options.deadline;
  while (true) {
    const Joined joined = join(wanted, options);
    if (joined.entry != nullptr) return joined.entry;
    if (joined.flight == nullptr || options.capturing) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s: %s %s is not built, and the stream is being captured: nothing is "
          "compiled or loaded then; make the call once before the capture, or warm it",
          candidates_.op, wanted.row->key, wanted.plan.identity.text()));
    }
    const std::shared_ptr<Flight>& flight = joined.flight;
    if (options.deadline == absl::InfiniteDuration()) {
      run(flight);
      flight->done.wait();
    } else {
      if (joined.ours) run_in_background([this, flight] { run(flight); });
      if (!flight->done.wait_until(deadline)) {
        return absl::DeadlineExceededError(absl::StrFormat(
            "%s: %s %s must be built within the compile deadline of %s: it is still being built, "
            "and goes on behind this call",
            candidates_.op, wanted.row->key, wanted.plan.identity.text(),
            absl::FormatDuration(options.deadline)));
      }
    }
    // Somebody built the same entry for another card: its outcome is not ours.
    if (flight->wanted.device.index != wanted.device.index) continue;
    KILN_RETURN_IF_ERROR(flight->status);
    return std::shared_ptr<const EntryRow>(flight->entry);
  }
}

void Dispatcher::run(const std::shared_ptr<Flight>& flight) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(flight->started, true)) return;
    if (closing_) flight->status = absl::CancelledError(candidates_.op + ": the op was destroyed");
  }
  if (flight->status.ok()) flight->status = build(*flight);
  {
    MutexLock lock(mutex_);
    flights_.remove(flight);
  }
  flight->done.notify();
}

void Dispatcher::run_in_background(std::function<void()> job) {
  {
    MutexLock lock(mutex_);
    ++in_background_;
  }
  runtime_.engine.background().run([this, job = std::move(job)] {
    job();
    MutexLock lock(mutex_);
    --in_background_;
    quiet_.notify_all();
  });
}

void Dispatcher::prefetch(DeviceSupport* support, AnyCall call, const MissOptions& options,
                          std::function<void(absl::Status)> done) {
  run_in_background([this, support, call = std::move(call), options, done = std::move(done)] {
    bool closing = false;
    {
      MutexLock lock(mutex_);
      closing = closing_;
    }
    done(closing ? absl::CancelledError(candidates_.op + ": the op was destroyed")
                 : entry_for(support, call.ref(), options).status());
  });
}

// With the stored winner, else the default configuration. A winner that cannot be had, because it
// may not be compiled here, say, leaves the call to the default.
absl::Status Dispatcher::load(Kernel& kernel, std::size_t ordinal, const Flight& flight,
                              const std::string& who) {
  const Wanted& wanted = flight.wanted;
  const auto load_with = [&](const Config& config) {
    return runtime_.load_kernel(kernel, *wanted.support, wanted.device, wanted.facts, config,
                                flight.policy, who);
  };
  const std::optional<TuneRecord> record =
      find_record(runtime_, *wanted.support, kernel, key_of(wanted, ordinal));
  if (record) {
    const absl::Status loaded = load_with(record->report.winner);
    if (loaded.ok()) {
      runtime_.tuned_loads.fetch_add(1, std::memory_order_relaxed);
      return loaded;
    }
    log_once(LogLevel::warning, "tuned: " + who,
             absl::StrFormat("%s: its tuned configuration %s is not used: %s", who,
                             to_string(record->report.winner), message_of(loaded)));
  }
  const absl::StatusOr<Config> config = default_config(kernel, wanted.facts);
  if (!config.ok()) return annotate(config.status(), who);
  return load_with(*config);
}

absl::Status Dispatcher::build(Flight& flight) {
  const Wanted& wanted = flight.wanted;
  const std::string who =
      absl::StrFormat("%s: %s %s", candidates_.op, wanted.row->key, wanted.plan.identity.text());
  std::unique_ptr<Kernel> fresh;
  if (flight.entry == nullptr) {
    KILN_RETURN_IF_ERROR(
        guarded(absl::StrFormat("%s (%s): the build function", who, wanted.row->origin), [&] {
          fresh = wanted.plan.build();
          return absl::OkStatus();
        }));
    if (fresh == nullptr)
      return absl::InternalError(
          absl::StrFormat("%s (%s): the build function made nothing", who, wanted.row->origin));
  }
  Kernel& owner = flight.entry != nullptr ? *flight.entry->kernel : *fresh;
  const std::vector<Kernel*> kernels = owner.kernels();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (fresh != nullptr) kernels[i]->set_tuner(tuner_);
    if (kernels[i]->loaded_on(wanted.device.index) != nullptr) continue;
    const absl::Status loaded = load(*kernels[i], i, flight, who);
    // Under `async` nobody may be waiting who would tell it.
    if (!loaded.ok() && flight.policy == CompilePolicy::async)
      log_once(LogLevel::warning, "async build: " + who, message_of(loaded));
    KILN_RETURN_IF_ERROR(loaded);
  }
  if (fresh == nullptr) return absl::OkStatus();
  Rows dropped;
  MutexLock lock(mutex_);
  flight.entry = add_entry(wanted, std::move(fresh), dropped);
  return absl::OkStatus();
}

}  // namespace kiln::internal
