#ifndef KILN_RUNTIME_DISPATCHER_H_
#define KILN_RUNTIME_DISPATCHER_H_

#include <kiln/op.h>
#include <kiln/registry.h>
#include <kiln/runtime.h>
#include <kiln/selection.h>

#include "base/mutex.h"
#include "runtime/hit_table.h"
#include "runtime/select.h"

#include <absl/status/statusor.h>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace kiln::internal {

// An entry: the one kernel object that serves all calls of one (implementation, identity, build
// facts).
struct EntryRow {
  const KernelRow* implementation = nullptr;
  BuildIdentity identity;
  DeviceType device_type;
  DeviceFacts facts;
  std::unique_ptr<Kernel> kernel;
  const void* as_interface = nullptr;
};

// How a miss may be served.
struct MissOptions {
  CompilePolicy policy = CompilePolicy::block;
  bool capturing = false;  // the stream records a graph: nothing may be compiled or loaded
};

// Dispatch for one interface of one op instance. Thread-safe.
class Dispatcher {
 public:
  Dispatcher(Runtime::Impl& runtime, InterfaceType interface, Candidates candidates);

  const InterfaceType& interface() const { return interface_; }
  const Candidates& candidates() const { return candidates_; }

  // A hit: asks no implementation, reads no device, takes no lock. Null on a miss.
  const void* find(const std::uint64_t* words, std::size_t count) const {
    const void* entry = nullptr;
    return hits_.find(words, count, &entry) == 1 ? entry : nullptr;
  }
  // The entry for `call`, made if need be; the rules of the design, section 3. `key` receives the
  // implementation's.
  absl::StatusOr<const void*> entry_for(DeviceSupport* support, CallRef call,
                                        const MissOptions& options);

  // That `call` is of this interface's type and can be a key. With `stated_ok`, stated device facts
  // are let through.
  absl::Status check_call_spec(CallRef call, bool stated_ok) const;
  // Selection for given facts, counted and logged.
  Selection select(CallRef call, DeviceType type, const DeviceFacts& facts) const;
  // OpNotAvailable when no implementation runs on that device type.
  absl::Status check_device_type(DeviceType type) const;
  absl::StatusOr<EntryPlan> plan_entry(const std::string& key, CallRef call) const;

  // Entries built so far; pointers stay valid as long as this object.
  std::vector<const EntryRow*> entries() const;

 private:
  // A build under way: of one entry, for one device.
  struct Flight {
    const KernelRow* implementation;
    BuildIdentity identity;
    DeviceType device_type;
    DeviceFacts facts;
    int index;
    Notification done;
    absl::Status status;  // read after `done`
    EntryRow* entry = nullptr;
  };
  absl::StatusOr<const EntryRow*> built_entry(DeviceSupport& support, const KernelRow& row,
                                              EntryPlan plan, const Device& device,
                                              const DeviceFacts& facts, const MissOptions& options);
  EntryRow* find_entry(const KernelRow& row, const BuildIdentity& identity, DeviceType type,
                       const DeviceFacts& facts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status build(DeviceSupport& support, const EntryPlan& plan, Flight& flight,
                     const MissOptions& options);

  Runtime::Impl& runtime_;
  const InterfaceType interface_;
  const Candidates candidates_;
  HitTable hits_;
  mutable Mutex mutex_;
  std::list<EntryRow> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_DISPATCHER_H_
