#ifndef KILN_RUNTIME_DISPATCHER_H_
#define KILN_RUNTIME_DISPATCHER_H_

#include <kiln/op.h>
#include <kiln/registry.h>
#include <kiln/runtime.h>
#include <kiln/selection.h>

#include "base/mutex.h"
#include "runtime/hit_table.h"
#include "runtime/select.h"
#include "runtime/tune_record.h"

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
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
  absl::Duration deadline = absl::InfiniteDuration();  // how long the call waits for a build
};

// What serves a call. A stand-in serves it while the implementation that was chosen is being built,
// and is not to be remembered.
struct Served {
  const void* entry = nullptr;
  bool stand_in = false;
};

// Dispatch for one interface of one op instance. Thread-safe.
class Dispatcher {
 public:
  Dispatcher(Runtime::Impl& runtime, InterfaceType interface, Candidates candidates);
  // Waits for its builds in the background.
  ~Dispatcher();

  const InterfaceType& interface() const { return interface_; }
  const Candidates& candidates() const { return candidates_; }

  // A hit: asks no implementation, reads no device, takes no lock. Null on a miss.
  const void* find(const std::uint64_t* words, std::size_t count) const {
    const void* entry = nullptr;
    return hits_.find(words, count, &entry) == 1 ? entry : nullptr;
  }
  // The entry for `call`, made if need be; the rules of the design, section 3. `key` receives the
  // implementation's.
  absl::StatusOr<Served> entry_for(DeviceSupport* support, CallRef call,
                                   const MissOptions& options);
  // The same in the background; `done` receives its outcome there, exactly once.
  void prefetch(DeviceSupport* support, AnyCall call, const MissOptions& options,
                std::function<void(absl::Status)> done);

  // That `call` is of this interface's type and can be a key. With `stated_ok`, stated device facts
  // are let through.
  absl::Status check_call_spec(CallRef call, bool stated_ok) const;
  // Selection for given facts, counted and logged.
  Selection select(CallRef call, DeviceType type, const DeviceFacts& facts) const;
  // OpNotAvailable when no implementation runs on that device type.
  absl::Status check_device_type(DeviceType type) const;
  absl::StatusOr<EntryPlan> plan_entry(const std::string& key, CallRef call) const;

  // What `Kernel::request_tune` of every kernel built from here on does.
  void set_tuner(std::function<bool(Kernel&)> tuner) { tuner_ = std::move(tuner); }
  // The entry behind what `entry_for` served; null: none of these.
  const EntryRow* row_of(const void* served) const;

  // Entries built so far; pointers stay valid as long as this object.
  std::vector<const EntryRow*> entries() const;

 private:
  // A call that missed, and what it needs.
  struct Wanted {
    DeviceSupport* support = nullptr;
    const KernelRow* row = nullptr;
    EntryPlan plan;
    Device device;
    DeviceFacts facts;
  };
  // A build under way: of one entry, for one device. Whoever first has a thread for it runs it, so
  // that nobody waits for a build that waits for a thread.
  struct Flight {
    Wanted wanted;
    CompilePolicy policy = CompilePolicy::block;
    bool started = false;  // guarded by the dispatcher's mutex, as the entry is until it has landed
    EntryRow* entry = nullptr;  // null: to be made
    Notification done;
    absl::Status status;  // read after `done`
  };
  // What there is for `wanted`: its entry, or its flight, which is made (and then `ours`) if need
  // be and allowed. Neither: nothing is built, and nothing may be.
  struct Joined {
    const EntryRow* entry = nullptr;
    std::shared_ptr<Flight> flight;
    bool ours = false;
  };
  Joined join(const Wanted& wanted, const MissOptions& options);
  EntryRow* find_entry(const Wanted& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<Wanted> want(DeviceSupport& support, const std::string& key, CallRef call,
                              const Device& device, const DeviceFacts& facts) const;
  absl::StatusOr<const EntryRow*> built_entry(const Wanted& wanted, const MissOptions& options);
  // Another implementation that is built and serves `call`; null where there is none, or not one.
  const EntryRow* stand_in(const Wanted& preferred, CallRef call, bool capturing);
  // The entry of `wanted`, made now because another op has loaded all that it needs; else null.
  const EntryRow* entry_of_loaded(const Wanted& wanted);
  std::shared_ptr<Flight> find_flight(const Wanted& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  EntryRow* add_entry(const Wanted& wanted, std::unique_ptr<Kernel> kernel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs the flight here unless somebody does already.
  void run(const std::shared_ptr<Flight>& flight);
  void run_in_background(std::function<void()> job);
  absl::Status build(Flight& flight);
  // What a stored winner of the entry's kernel is found by.
  TuneKey key_of(const Wanted& wanted, std::size_t ordinal) const;
  absl::Status load(Kernel& kernel, std::size_t ordinal, const Flight& flight,
                    const std::string& who);

  Runtime::Impl& runtime_;
  const InterfaceType interface_;
  const Candidates candidates_;
  std::function<bool(Kernel&)> tuner_;
  HitTable hits_;
  mutable Mutex mutex_;
  std::list<EntryRow> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
  CondVar quiet_;
  int in_background_ ABSL_GUARDED_BY(mutex_) = 0;  // jobs that use this object
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_DISPATCHER_H_
