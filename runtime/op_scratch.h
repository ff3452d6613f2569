#ifndef KILN_RUNTIME_OP_SCRATCH_H_
#define KILN_RUNTIME_OP_SCRATCH_H_

#include <kiln/export.h>
#include <kiln/runtime.h>
#include <kiln/tensor.h>

#include "base/mutex.h"

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace kiln::internal {

// The scratch memory of an op: a block for each stream and for each capture of one, which grows by
// a new block and keeps the old ones, since captured graphs may still name them. Thread-safe.
class KILN_EXPORT OpScratch {
 public:
  explicit OpScratch(Runtime& runtime) : runtime_(runtime) {}
  // Frees all. REQUIRES: the work that used it has ended.
  ~OpScratch();
  OpScratch(const OpScratch&) = delete;
  OpScratch& operator=(const OpScratch&) = delete;

  // At least `bytes` on the stream's device, the same as before where that is enough. Errors: those
  // of an allocation.
  absl::StatusOr<void*> get(const Stream& stream, std::size_t bytes);

 private:
  // A graph captured on a stream may run beside the stream's calls and beside other graphs.
  struct Owner {
    std::uint8_t device_type, device_index;
    void* stream;
    std::uint64_t capture;
    bool operator<(const Owner& other) const {
      return std::tie(device_type, device_index, stream, capture) <
             std::tie(other.device_type, other.device_index, other.stream, other.capture);
    }
  };
  struct Blocks {
    Device device;
    std::vector<std::pair<void*, std::size_t>> blocks;  // the last is in use
  };
  Runtime& runtime_;
  Mutex mutex_;
  std::map<Owner, Blocks> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_OP_SCRATCH_H_
