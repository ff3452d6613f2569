#ifndef KILN_RUNTIME_OP_TUNING_H_
#define KILN_RUNTIME_OP_TUNING_H_

#include <kiln/op.h>
#include <kiln/tune.h>

#include "base/mutex.h"
#include "runtime/dispatcher.h"
#include "runtime/tune_record.h"

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln::internal {

// Tuning mode of one op instance. Remembers for every entry the largest call that it served, by
// bytes, and sweeps the entry's kernels in that call: at once when tuning is requested, else when
// the first call reaches the kernel. Thread-safe; sweeps of a process run one at a time.
class OpTuning {
 public:
  explicit OpTuning(OpCore& core) : core_(core) {}

  // All kernels of the instance, those to come included.
  void request(const TuneOptions& options);
  bool requested() const { return all_.load(std::memory_order_relaxed); }
  // One of its kernels. False: it does not tune.
  bool request(Kernel& kernel);

  // A call that missed is about to run on `kernels`, of `entries`: it is remembered, and what of it
  // is to be tuned is. Not for stand-ins, nor during capture.
  void before_call(const CallArgs& args, const ParamValues& execution, const Device& device,
                   std::span<const void* const> kernels, std::span<const EntryRow* const> entries);

  std::vector<TuneReport> reports() const;

 private:
  // A call in which kernels can be measured.
  struct Problem {
    CallArgs args;
    ParamValues execution;
    Device device;
    std::vector<const void*> kernels;
    std::vector<const EntryRow*> entries;
    double bytes = 0;
  };
  using Problems = std::map<std::pair<const EntryRow*, int>, std::shared_ptr<const Problem>>;

  void tune_entry(const Problem& problem, const EntryRow& entry, const Kernel* only);
  bool claim(const Kernel& kernel, int index);
  void tune(const Problem& problem, const EntryRow& entry, std::size_t ordinal, Kernel& kernel,
            const TuneOptions& options);
  // Decides by a record or a sweep; the report says which.
  void find_winner(const Problem& problem, const TuneKey& key, Kernel& kernel,
                   DeviceSupport& support, const std::vector<Config>& configs,
                   const TuneOptions& options, TuneReport& report);
  absl::Status put_in_force(const EntryRow& entry, Kernel& kernel, DeviceSupport& support,
                            const Config& winner);

  OpCore& core_;
  std::atomic<bool> all_{false};
  std::atomic<bool> some_{false};  // a kernel asked for itself
  mutable Mutex mutex_;
  TuneOptions options_ ABSL_GUARDED_BY(mutex_);
  Problems problems_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<const Kernel*, int>> claimed_ ABSL_GUARDED_BY(mutex_);
  std::vector<TuneReport> reports_ ABSL_GUARDED_BY(mutex_);
};

// What a record of a kernel of `entry` is found by.
TuneKey tune_key(const std::string& op, const EntryRow& entry, std::size_t ordinal);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_OP_TUNING_H_
