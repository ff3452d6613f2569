#include "runtime/dispatcher.h"

#include "base/log.h"
#include "base/process.h"
#include "runtime/guarded.h"
#include "runtime/messages.h"
#include "runtime/runtime_impl.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

namespace kiln::internal {
namespace {
// Rows of the hit table at most: a spec that grows with every call makes a row a step.
constexpr std::size_t kMaxHitRows = 4096;
}  // namespace

Dispatcher::Dispatcher(Runtime::Impl& runtime, InterfaceType interface, Candidates candidates)
    : runtime_(runtime),
      interface_(std::move(interface)),
      candidates_(std::move(candidates)),
      hits_(interface_.request->words, kHitWords, kMaxHitRows) {}

absl::Status Dispatcher::check_call_spec(CallRef call, bool stated_ok) const {
  if (call.type == nullptr || !same_type(*call.type, *interface_.request)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %s takes a %s call spec, got %s", candidates_.op, interface_.type_name,
                        std::string(interface_.request->name),
                        call.type == nullptr ? "none" : std::string(call.type->name)));
  }
  for (const NamedValue& v : call.type->values(call.data, false)) {
    const double* number = std::get_if<double>(&v.value);
    if (number != nullptr && std::isnan(*number)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: a call spec with a NaN %s: %s is NaN in %s", candidates_.op,
                          kCannotKey, v.name, to_string(call)));
    }
  }
  std::vector<std::string> stated;
  if (call.where().arch != 0) stated.push_back("'arch'");
  if (call.where().sm_count != 0) stated.push_back("'sm_count'");
  if (call.where().smem_budget != 0) stated.push_back("'smem_budget'");
  if (!stated_ok && !stated.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: %s [%s]: they are derived from `device`; only key_for takes stated facts: %s",
        candidates_.op, kStates, absl::StrJoin(stated, ", "), to_string(call)));
  }
  return absl::OkStatus();
}

absl::Status Dispatcher::check_device_type(DeviceType type) const {
  if (any_runs_on(candidates_, type)) return absl::OkStatus();
  if (candidates_.all_excluded) {
    return with_kind(
        absl::UnimplementedError(absl::StrFormat("%s: %s %s (OpOptions, KILN_SELECT)",
                                                 candidates_.op, kNoneLeft, interface().name)),
        ErrorKind::op_not_available);
  }
  return with_kind(
      absl::UnimplementedError(absl::StrFormat(
          "%s: %s %s; its implementations are %s; known targets: %s", candidates_.op, kDoNotRunOn,
          std::string(type.name()),
          absl::StrJoin(candidates_.rows, ", ",
                        [](std::string* out, const KernelRow& row) { out->append(row.key); }),
          runtime_.known_targets())),
      ErrorKind::op_not_available);
}

Selection Dispatcher::select(CallRef call, DeviceType type, const DeviceFacts& facts) const {
  runtime_.selections.fetch_add(1, std::memory_order_relaxed);
  const TraceSpan span(
      runtime_.trace.get(), "select",
      runtime_.trace == nullptr ? std::string() : candidates_.op + " " + to_string(call));
  Selection selection = internal::select(candidates_, type, facts, call);
  if (absl::Status available = check_device_type(type); !available.ok())
    selection.error = std::move(available);
  if (runtime_.options.log_selection) {
    log(LogLevel::info,
        absl::StrFormat("select %s.%s: %s -> %s", candidates_.op, interface_.name, to_string(call),
                        selection.chosen.value_or(message_of(selection.error))));
  }
  return selection;
}

absl::StatusOr<EntryPlan> Dispatcher::plan_entry(const std::string& key, CallRef call) const {
  const auto row = std::find_if(candidates_.rows.begin(), candidates_.rows.end(),
                                [&](const KernelRow& r) { return r.key == key; });
  if (row == candidates_.rows.end()) {
    return absl::NotFoundError(absl::StrFormat("%s: %s has no implementation %s", candidates_.op,
                                               interface_.type_name, key));
  }
  EntryPlan plan;
  KILN_RETURN_IF_ERROR(
      guarded(absl::StrFormat("%s: entry_for of %s (%s)", candidates_.op, key, row->origin), [&] {
        plan = row->type.entry_for(call);
        return absl::OkStatus();
      }));
  return plan;
}

absl::StatusOr<Dispatcher::Wanted> Dispatcher::want(DeviceSupport& support, const std::string& key,
                                                    CallRef call, const Device& device,
                                                    const DeviceFacts& facts) const {
  KILN_ASSIGN_OR_RETURN(EntryPlan plan, plan_entry(key, call));
  const auto row = std::find_if(candidates_.rows.begin(), candidates_.rows.end(),
                                [&](const KernelRow& r) { return r.key == key; });
  return Wanted{&support, &*row, std::move(plan), device, facts};
}

absl::StatusOr<Served> Dispatcher::entry_for(DeviceSupport* support, CallRef call,
                                             const MissOptions& options) {
  KILN_RETURN_IF_ERROR(check_call_spec(call, /*stated_ok=*/false));
  std::vector<std::uint64_t> words(interface_.request->words);
  call.type->write(call.data, words.data());
  const void* hit[kHitWords];
  if (hits_.find(words.data(), words.size(), hit) == kHitWords) {
    const auto* row = static_cast<const EntryRow*>(hit[1]);
    return Served{hit[0], {std::shared_ptr<void>(), row}};  // kept: nothing need be held
  }
  KILN_RETURN_IF_ERROR(check_not_forked(runtime_.owner, candidates_.op));

  const Device device = call.where().device;
  KILN_RETURN_IF_ERROR(check_device_type(device.type));
  if (support == nullptr) {
    return absl::NotFoundError(
        absl::StrFormat("%s: device type %s has no device support registered", candidates_.op,
                        std::string(device.type.name())));
  }
  if (device.index >= kMaxDevices) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: a device index must be below %d, got %d",
                                                      candidates_.op, kMaxDevices, device.index));
  }
  // A graph that is being captured may be run as long as the op lives.
  const bool keep = options.keep || options.capturing;
  KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, runtime_.facts(*support, device));
  const Selection selection = select(call, device.type, facts);
  KILN_RETURN_IF_ERROR(selection.error);
  KILN_ASSIGN_OR_RETURN(const Wanted wanted,
                        want(*support, *selection.chosen, call, device, facts));
  if (options.policy == CompilePolicy::async) {
    const Joined joined = join(wanted, options);
    if (joined.ours) run_in_background([this, flight = joined.flight] { run(flight); });
    if (joined.entry == nullptr) {
      if (std::shared_ptr<const EntryRow> other = stand_in(wanted, call, options.capturing)) {
        runtime_.stand_ins.fetch_add(1, std::memory_order_relaxed);
        Served served = serve(other, keep);
        served.stand_in = true;
        return served;
      }
    }
  }
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<const EntryRow> entry, built_entry(wanted, options));
  Served served = serve(entry, keep);
  if (served.kept) {
    const void* const found[kHitWords] = {served.entry, served.row.get()};
    hits_.insert(words.data(), words.size(), found, kHitWords);
  }
  return served;
}

std::shared_ptr<const EntryRow> Dispatcher::stand_in(const Wanted& preferred, CallRef call,
                                                     bool capturing) {
  // Those that are built for this call, whether or not they serve it; then the usual selection.
  Candidates built{candidates_.op, candidates_.interface_type, {}, candidates_.prefer};
  std::vector<std::shared_ptr<const EntryRow>> entries;
  for (const KernelRow& row : candidates_.rows) {
    if (&row == preferred.row || (row.type.refusal != nullptr && row.type.refusal(call))) continue;
    const absl::StatusOr<Wanted> wanted =
        want(*preferred.support, row.key, call, preferred.device, preferred.facts);
    if (!wanted.ok()) continue;
    std::shared_ptr<const EntryRow> entry;
    {
      MutexLock lock(mutex_);
      entry = find_entry(*wanted);
    }
    if (entry == nullptr && !capturing) entry = entry_of_loaded(*wanted);
    if (entry == nullptr || entry->kernel->loaded_on(preferred.device.index) == nullptr) continue;
    built.rows.push_back(row);
    entries.push_back(std::move(entry));
  }
  const Selection selection = internal::select(built, preferred.device.type, preferred.facts, call);
  if (!selection.error.ok()) return nullptr;
  const auto chosen = std::find_if(built.rows.begin(), built.rows.end(),
                                   [&](const KernelRow& r) { return r.key == *selection.chosen; });
  return entries[static_cast<std::size_t>(chosen - built.rows.begin())];
}

}  // namespace kiln::internal
