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
#include <unordered_map>
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
  // Kept for the op's life, and so found without a lock. One that is not is shared with the calls
  // that it serves, and dropped when newer ones need its place. Guarded by the dispatcher's mutex.
  bool kept = false;
};

// How a miss may be served.
struct MissOptions {
  CompilePolicy policy = CompilePolicy::block;
  bool capturing = false;  // the stream records a graph: nothing may be compiled or loaded
  absl::Duration deadline = absl::InfiniteDuration();  // how long the call waits for a build
  bool keep = false;  // what serves must stay valid for the op's life, beyond the limit too
};

// What serves a call. A stand-in serves it while the implementation that was chosen is being built,
// and is not to be remembered. Neither is an entry that is not kept: it is valid as long as `row`
// is held, and what the call enqueued must have ended before that is let go.
struct Served {
  const void* entry = nullptr;
  std::shared_ptr<const EntryRow> row;
  bool kept = true;
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
    const void* found[kHitWords];
    return hits_.find(words, count, found) == kHitWords ? found[0] : nullptr;
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
  // The kept entries; pointers stay valid as long as this object.
  std::vector<const EntryRow*> entries() const;

 private:
  // What a hit finds: the entry as its interface, and its row.
  static constexpr int kHitWords = 2;
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
    std::shared_ptr<EntryRow> entry;  // null: to be made
    Notification done;
    absl::Status status;  // read after `done`
  };
  // What there is for `wanted`: its entry, or its flight, which is made (and then `ours`) if need
  // be and allowed. Neither: nothing is built, and nothing may be.
  struct Joined {
    std::shared_ptr<const EntryRow> entry;
    std::shared_ptr<Flight> flight;
    bool ours = false;
  };
  Joined join(const Wanted& wanted, const MissOptions& options);
  std::shared_ptr<EntryRow> find_entry(const Wanted& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `row` as what serves a call, kept first if `keep` asks for it.
  Served serve(const std::shared_ptr<const EntryRow>& row, bool keep);

  absl::StatusOr<Wanted> want(DeviceSupport& support, const std::string& key, CallRef call,
                              const Device& device, const DeviceFacts& facts) const;
  absl::StatusOr<std::shared_ptr<const EntryRow>> built_entry(const Wanted& wanted,
                                                              const MissOptions& options);
  // Another implementation that is built and serves `call`; null where there is none, or not one.
  std::shared_ptr<const EntryRow> stand_in(const Wanted& preferred, CallRef call, bool capturing);
  // The entry of `wanted`, made now because another op has loaded all that it needs; else null.
  std::shared_ptr<const EntryRow> entry_of_loaded(const Wanted& wanted);
  std::shared_ptr<Flight> find_flight(const Wanted& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Rows = std::list<std::shared_ptr<EntryRow>>;
  // `dropped` receives what makes room, to be let go without the lock.
  std::shared_ptr<EntryRow> add_entry(const Wanted& wanted, std::unique_ptr<Kernel> kernel,
                                      Rows& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void drop_oldest(Rows& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  Rows kept_ ABSL_GUARDED_BY(mutex_);
  Rows passing_ ABSL_GUARDED_BY(mutex_);  // not kept; least recently used first
  // Both, by a hash of what they are found by.
  std::unordered_multimap<std::uint64_t, Rows::iterator> index_ ABSL_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
  CondVar quiet_;
  int in_background_ ABSL_GUARDED_BY(mutex_) = 0;  // jobs that use this object
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_DISPATCHER_H_
