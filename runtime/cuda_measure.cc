#include "runtime/cuda_measure.h"

#include "runtime/cuda_memory.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln {
namespace {

// Bodies of one graph, when they run warm and back to back.
constexpr int kBodiesOfGraph = 50;

// The work of a stream as a graph that can be launched; destroyed with the scope.
class Recorded {
 public:
  explicit Recorded(const CudaDriver& driver) : driver_(driver) {}
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  ~Recorded() {
    if (exec_ != nullptr) driver_.graph_exec_destroy(exec_);
    if (graph_ != nullptr) driver_.graph_destroy(graph_);
  }

  absl::Status record(CUstream stream, const std::function<absl::Status()>& body, int bodies) {
    const CUresult begun = driver_.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (begun != CUDA_SUCCESS) {
      const absl::Status status = driver_.status(begun, "timing: recording a graph");
      return absl::FailedPreconditionError(std::string(status.message()));
    }
    absl::Status status;
    for (int i = 0; i < bodies && status.ok(); ++i) status = body();
    // The capture is ended whatever became of the body, or the stream stays unusable.
    const CUresult ended = driver_.stream_end_capture(stream, &graph_);
    if (!status.ok()) return status;
    status = driver_.status(ended, "timing: recording a graph");
    if (!status.ok()) return status;
    return driver_.status(driver_.graph_instantiate(&exec_, graph_, 0), "timing: making a graph");
  }
  CUgraphExec exec() const { return exec_; }

 private:
  const CudaDriver& driver_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

class Event {
 public:
  explicit Event(const CudaDriver& driver) : driver_(driver) {
    result_ = driver_.event_create(&event_, CU_EVENT_DEFAULT);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) driver_.event_destroy(event_);
  }
  CUresult result() const { return result_; }
  CUevent handle() const { return event_; }

 private:
  const CudaDriver& driver_;
  CUevent event_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
};

// Memory of the stream; given back in its order.
class Scratch {
 public:
  Scratch(const CudaDriver& driver, const CudaContext& context, CUstream stream)
      : driver_(driver), context_(context), stream_(stream) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (data_ != nullptr) free_cuda(driver_, context_, stream_, data_).IgnoreError();
  }
  absl::Status allocate(std::size_t bytes) {
    KILN_ASSIGN_OR_RETURN(data_, allocate_cuda(driver_, context_, stream_, bytes));
    return absl::OkStatus();
  }
  void* data() const { return data_; }

 private:
  const CudaDriver& driver_;
  const CudaContext& context_;
  CUstream stream_;
  void* data_ = nullptr;
};

}  // namespace

absl::StatusOr<double> measure_cuda(const CudaDriver& driver, const CudaContext& context,
                                    CUstream stream, const std::function<absl::Status()>& body,
                                    int repeats, std::size_t flush_bytes) {
  const auto check = [&](CUresult result) { return driver.status(result, "timing a graph"); };
  const ScopedContext current(driver, context);
  KILN_RETURN_IF_ERROR(check(current.result()));
  const int bodies = flush_bytes > 0 ? 1 : std::min(repeats, kBodiesOfGraph);
  const int launches = (repeats + bodies - 1) / bodies;
  Recorded recorded(driver);
  KILN_RETURN_IF_ERROR(recorded.record(stream, body, bodies));
  Scratch flushed(driver, context, stream);
  if (flush_bytes > 0) KILN_RETURN_IF_ERROR(flushed.allocate(flush_bytes));
  const Event begin(driver);
  const Event end(driver);
  KILN_RETURN_IF_ERROR(check(begin.result()));
  KILN_RETURN_IF_ERROR(check(end.result()));
  double seconds = 0;
  // Warm: all launches between one pair of events. Cold: a pair for each.
  for (int done = 0; done < launches;) {
    const int together = flush_bytes > 0 ? 1 : launches;
    if (flush_bytes > 0) {
      KILN_RETURN_IF_ERROR(fill_cuda(driver, context, stream, flushed.data(),
                                     static_cast<std::uint8_t>(done), flush_bytes));
    }
    KILN_RETURN_IF_ERROR(check(driver.event_record(begin.handle(), stream)));
    for (int i = 0; i < together; ++i)
      KILN_RETURN_IF_ERROR(check(driver.graph_launch(recorded.exec(), stream)));
    KILN_RETURN_IF_ERROR(check(driver.event_record(end.handle(), stream)));
    KILN_RETURN_IF_ERROR(check(driver.event_synchronize(end.handle())));
    float milliseconds = 0;
    KILN_RETURN_IF_ERROR(
        check(driver.event_elapsed_time(&milliseconds, begin.handle(), end.handle())));
    seconds += milliseconds * 1e-3;
    done += together;
  }
  return seconds / (static_cast<double>(launches) * bodies);
}

}  // namespace kiln
