#ifndef KILN_BENCH_GPU_DEVICE_TIMER_H_
#define KILN_BENCH_GPU_DEVICE_TIMER_H_

#include <kiln/status.h>

#include "bench/gpu/cuda_session.h"
#include "bench/gpu/cupti.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

// How device work is timed, for Kiln and for its peers (docs/benchmarks.md):
//
//   clock       the profiler's kernel records: the union of the execution intervals of a call's
//               kernels. Host time and gaps between kernels are not in it; copies are told apart.
//               Where there is no profiler, a pair of events, and the result says so.
//   L2          flushed before every iteration (a buffer of twice its size is zeroed), or warm
//   iterations  3 to calibrate, 25 ms to warm up, then as many as fit 100 ms, 10 to 200
//   order       A B C C B A, half of the iterations in each pass, so that drift cancels
//   beside it   wall time a call of a replayed graph, L2 warm: what launch gaps leave visible
namespace kiln::bench {

// One of those that are compared. `call` enqueues one call on the stream that is measured.
struct Contender {
  std::string name;
  std::function<absl::Status()> call;
  bool is_copy = false;  // its copies are its work
  double bytes = 0;      // that it moves, where they are not the workload's
};

struct TimerOptions {
  bool cold_l2 = true;
  double warm_up_ms = 25;
  double measure_ms = 100;
  int min_iterations = 10;
  int max_iterations = 200;
  bool graph = true;
};

// Of a sample, microseconds.
struct Spread {
  double median = 0, p10 = 0, p90 = 0;
  int count = 0;
};
// REQUIRES: not empty.
Spread spread_of(std::vector<double> values);

struct Timing {
  std::string name;
  double bytes = 0;     // as the contender's
  absl::Status status;  // why there is no figure
  std::string clock;    // "cupti" or "events"
  Spread us;
  std::vector<double> pass_us;       // medians of the two passes
  std::vector<std::string> kernels;  // of one call
  double copy_us = 0;                // median, where copies are not its work
  std::optional<Spread> graph_us;
  absl::Status graph_status;  // why there is none
};

// Thread: that of the session.
class DeviceTimer {
 public:
  // `cupti` may be null: then events, and the results say so.
  DeviceTimer(const CudaSession& session, std::unique_ptr<Cupti> cupti, std::string why_no_cupti)
      : session_(session), cupti_(std::move(cupti)), why_no_cupti_(std::move(why_no_cupti)) {}

  const Cupti* cupti() const { return cupti_.get(); }
  const std::string& why_no_cupti() const { return why_no_cupti_; }

  // In the order given. A contender that fails has its status and disturbs no other, unless the
  // device itself is lost.
  std::vector<Timing> measure(CUstream stream, std::span<const Contender> contenders,
                              const TimerOptions& options);

 private:
  struct Sample {
    std::vector<double> us, copy_us;
    std::vector<std::string> kernels;
    std::string clock;
  };
  absl::StatusOr<double> warm_up(CUstream stream, const Contender& contender,
                                 const TimerOptions& options) const;
  absl::StatusOr<Sample> pass(CUstream stream, const Contender& contender,
                              const TimerOptions& options, int iterations);
  absl::StatusOr<Sample> pass_by_records(CUstream stream, const Contender& contender,
                                         const TimerOptions& options, int iterations,
                                         std::size_t buffer_bytes);
  absl::StatusOr<Sample> pass_by_events(CUstream stream, const Contender& contender,
                                        const TimerOptions& options, int iterations) const;
  absl::StatusOr<Spread> graph_replay(CUstream stream, const Contender& contender,
                                      double call_us) const;
  absl::Status record_calls(CUstream stream, const Contender& contender,
                            const TimerOptions& options, int iterations, std::uint64_t first_call);

  const CudaSession& session_;
  std::unique_ptr<Cupti> cupti_;
  std::string why_no_cupti_;
  std::uint64_t next_call_ = 1;
};

}  // namespace kiln::bench

#endif  // KILN_BENCH_GPU_DEVICE_TIMER_H_
