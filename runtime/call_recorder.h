#ifndef KILN_RUNTIME_CALL_RECORDER_H_
#define KILN_RUNTIME_CALL_RECORDER_H_

#include <kiln/export.h>

#include "base/distinct_lines.h"
#include "runtime/call_json.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace kiln::internal {

// Writes each distinct call that a process makes to a calls file (docs/call_format.md), once: what
// `kiln warm --calls` reads. Trouble with the file costs one warning and never a call.
//
// Two calls are the same when they differ in the device's index or in execution parameters alone:
// neither changes what is built. Thread-safe.
class KILN_EXPORT CallRecorder {
 public:
  // Distinct calls that one file holds at most: a shape that never repeats must not fill a disk.
  static constexpr std::size_t kMaxCalls = 65536;

  // Null for an empty path.
  static std::unique_ptr<CallRecorder> open(const std::string& path,
                                            std::size_t max_calls = kMaxCalls);
  void record(ParsedCall call, const Signature& signature);
  std::int64_t recorded() const { return recorded_.load(std::memory_order_relaxed); }

 private:
  explicit CallRecorder(std::unique_ptr<DistinctLines> lines) : lines_(std::move(lines)) {}

  const std::unique_ptr<DistinctLines> lines_;
  std::atomic<std::int64_t> recorded_{0};
  std::atomic<bool> has_warned_{false};
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_CALL_RECORDER_H_
