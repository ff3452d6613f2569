#include "runtime/dispatcher.h"

#include "base/log.h"
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
      hits_(interface_.request->words, 1, kMaxHitRows) {}

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

absl::StatusOr<const void*> Dispatcher::entry_for(DeviceSupport* support, CallRef call,
                                                  const MissOptions& options) {
  KILN_RETURN_IF_ERROR(check_call_spec(call, /*stated_ok=*/false));
  std::vector<std::uint64_t> words(interface_.request->words);
  call.type->write(call.data, words.data());
  if (const void* hit = find(words.data(), words.size())) return hit;

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
  KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, runtime_.facts(*support, device));
  const Selection selection = select(call, device.type, facts);
  KILN_RETURN_IF_ERROR(selection.error);
  KILN_ASSIGN_OR_RETURN(EntryPlan plan, plan_entry(*selection.chosen, call));
  const auto row = std::find_if(candidates_.rows.begin(), candidates_.rows.end(),
                                [&](const KernelRow& r) { return r.key == *selection.chosen; });
  KILN_ASSIGN_OR_RETURN(const EntryRow* entry,
                        built_entry(*support, *row, std::move(plan), device, facts, options));
  hits_.insert(words.data(), words.size(), &entry->as_interface, 1);
  return entry->as_interface;
}

EntryRow* Dispatcher::find_entry(const KernelRow& row, const BuildIdentity& identity,
                                 DeviceType type, const DeviceFacts& facts) {
  for (EntryRow& entry : entries_) {
    if (entry.implementation == &row && entry.identity == identity && entry.device_type == type &&
        entry.facts == facts) {
      return &entry;
    }
  }
  return nullptr;
}

absl::StatusOr<const EntryRow*> Dispatcher::built_entry(DeviceSupport& support,
                                                        const KernelRow& row, EntryPlan plan,
                                                        const Device& device,
                                                        const DeviceFacts& facts,
                                                        const MissOptions& options) {
  while (true) {
    std::shared_ptr<Flight> flight;
    bool ours = false;
    {
      MutexLock lock(mutex_);
      EntryRow* entry = find_entry(row, plan.identity, device.type, facts);
      if (entry != nullptr && entry->kernel->loaded_on(device.index) != nullptr) return entry;
      const auto at = std::find_if(flights_.begin(), flights_.end(), [&](const auto& f) {
        return f->implementation == &row && f->identity == plan.identity &&
               f->device_type == device.type && f->facts == facts;
      });
      if (at != flights_.end()) {
        flight = *at;
      } else {
        if (options.capturing) {
          return absl::FailedPreconditionError(
              absl::StrFormat("%s: %s %s is not built, and the stream is being captured: nothing "
                              "is compiled or loaded then; make the "
                              "call once before the capture, or warm it",
                              candidates_.op, row.key, plan.identity.text()));
        }
        ours = true;
        flight = std::make_shared<Flight>();
        flight->implementation = &row;
        flight->identity = plan.identity;
        flight->device_type = device.type;
        flight->facts = facts;
        flight->index = device.index;
        flight->entry = entry;
        flights_.push_back(flight);
      }
    }
    if (ours) {
      flight->status = build(support, plan, *flight, options);
      {
        MutexLock lock(mutex_);
        flights_.remove(flight);
      }
      flight->done.notify();
    } else {
      flight->done.wait();
      // Somebody built the same entry for another card: its outcome is not ours.
      if (flight->index != device.index) continue;
    }
    KILN_RETURN_IF_ERROR(flight->status);
    return flight->entry;
  }
}

absl::Status Dispatcher::build(DeviceSupport& support, const EntryPlan& plan, Flight& flight,
                               const MissOptions& options) {
  const KernelRow& row = *flight.implementation;
  const std::string who =
      absl::StrFormat("%s: %s %s", candidates_.op, row.key, plan.identity.text());
  std::unique_ptr<Kernel> fresh;
  if (flight.entry == nullptr) {
    KILN_RETURN_IF_ERROR(
        guarded(absl::StrFormat("%s (%s): the build function", who, row.origin), [&] {
          fresh = plan.build();
          return absl::OkStatus();
        }));
    if (fresh == nullptr)
      return absl::InternalError(
          absl::StrFormat("%s (%s): the build function made nothing", who, row.origin));
  }
  Kernel& owner = flight.entry != nullptr ? *flight.entry->kernel : *fresh;
  const Device device{flight.device_type, static_cast<std::uint8_t>(flight.index)};
  for (Kernel* kernel : owner.kernels()) {
    if (kernel->loaded_on(device.index) != nullptr) continue;
    KILN_RETURN_IF_ERROR(
        runtime_.load_kernel(*kernel, support, device, flight.facts, options.policy, who));
  }
  if (fresh != nullptr) {
    MutexLock lock(mutex_);
    entries_.push_back(
        {&row, plan.identity, flight.device_type, flight.facts, std::move(fresh), nullptr});
    flight.entry = &entries_.back();
    flight.entry->as_interface = row.type.as_interface(flight.entry->kernel.get());
    runtime_.entries_built.fetch_add(1, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

std::vector<const EntryRow*> Dispatcher::entries() const {
  MutexLock lock(mutex_);
  std::vector<const EntryRow*> out;
  for (const EntryRow& entry : entries_) out.push_back(&entry);
  return out;
}

}  // namespace kiln::internal
