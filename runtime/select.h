#ifndef KILN_RUNTIME_SELECT_H_
#define KILN_RUNTIME_SELECT_H_

#include <kiln/registry.h>
#include <kiln/selection.h>

#include <absl/status/status.h>

#include <string>
#include <vector>

namespace kiln::internal {

// The implementations of one interface, in order of key, and what a user asked of their selection.
struct Candidates {
  std::string op;  // for messages
  std::string interface_type;
  std::vector<KernelRow> rows;  // sorted by key
  std::vector<std::string> prefer;
  bool all_excluded = false;  // there were rows: the user's lists leave none
};

// What is wrong with the implementations of an interface as a set: two general ones, a general one
// with preferences, a preference for a key that is not of this interface, a cycle.
KILN_EXPORT absl::Status check_candidates(const Candidates& candidates);

// Chooses for `call` on a device of `type` with `facts`. Pure: reads nothing but its arguments,
// calls only `refusal`s.
KILN_EXPORT Selection select(const Candidates& candidates, DeviceType type,
                             const DeviceFacts& facts, CallRef call);

// True when some implementation can run on devices of that type, whatever the call.
KILN_EXPORT bool any_runs_on(const Candidates& candidates, DeviceType type);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_SELECT_H_
