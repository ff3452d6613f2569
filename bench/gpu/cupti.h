#ifndef KILN_BENCH_GPU_CUPTI_H_
#define KILN_BENCH_GPU_CUPTI_H_

#include <kiln/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kiln::bench {

// What the device did for one call, by the profiler's records.
struct DeviceWork {
  double kernel_us = 0;              // length of the union of all its kernels' execution intervals
  double copy_us = 0;                // the same of its copies and fills
  std::vector<std::string> kernels;  // their names in order of their start, as the binary has them
};

// Kernel records of CUPTI, tied to calls by external correlation ids; never by comparing times. The
// library is opened at run time. CUPTI serves one client in a process and hands its buffers to
// plain functions, so there can be one of these at a time. One thread at a time: the one that
// calls.
class Cupti {
 public:
  // `library`: a file to open; empty: the toolkit's and the loader's are tried. Errors:
  // FailedPrecondition: none can be opened, or it is of another major version than this was built
  // for, or this was built without CUPTI's headers; AlreadyExists.
  static absl::StatusOr<std::unique_ptr<Cupti>> open(const std::string& library);
  virtual ~Cupti() = default;

  virtual const std::string& library() const = 0;
  virtual std::uint32_t version() const = 0;

  // Begins and ends recording; buffers hold `buffer_bytes` each.
  virtual absl::Status start(std::size_t buffer_bytes) = 0;
  virtual absl::Status stop() = 0;
  // What this thread calls between the two belongs to `call`, a number of the caller's.
  virtual absl::Status begin_call(std::uint64_t call) = 0;
  virtual absl::Status end_call() = 0;
  // What was recorded since start, by call. REQUIRES: the device is idle. DataLoss when records
  // were dropped.
  virtual absl::StatusOr<std::map<std::uint64_t, DeviceWork>> collect() = 0;
};

// Length of the union of intervals [first, second).
std::uint64_t union_length(std::vector<std::pair<std::uint64_t, std::uint64_t>> intervals);

}  // namespace kiln::bench

#endif  // KILN_BENCH_GPU_CUPTI_H_
