#ifndef KILN_EXAMPLES_SERVING_SERVICE_H_
#define KILN_EXAMPLES_SERVING_SERVICE_H_

#include <kiln/kiln.h>
#include <kiln/ops/layer_norm.h>

#include "request_queue.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace serving {

using Clock = std::chrono::steady_clock;

// "Normalize these rows": a stand-in for one step of a model. Rows and their length vary.
struct Request {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  Clock::time_point due;  // when its user sent it
  std::function<void(const absl::Status&)> done;
};

struct ServiceOptions {
  kiln::Device device;
  int workers = 4;
  std::size_t queue_capacity = 100000;
  std::vector<std::int64_t> widths;  // what is served; each has an op of its own, as a layer has
  std::int64_t rows_max = 64;
  bool prefetch = false;  // build and load all kernels before the service is ready
};

// Worker threads take requests from one queue. The ops are shared by all workers, which Kiln
// allows; a stream and the memory belong to one worker each.
class Service {
 public:
  static absl::StatusOr<std::unique_ptr<Service>> start(const ServiceOptions& options);
  // Serves what is queued, then stops.
  ~Service();

  // False when the service is overloaded: `done` is not called then.
  bool submit(Request request) { return queue_.push(std::move(request)); }
  // One request, before the service says that it is ready. It is of the longest rows, which the
  // general kernel serves: under `async` that one stands in for all others from then on, where the
  // backend has one kernel for all lengths.
  absl::Status check_health();

 private:
  struct Worker;
  explicit Service(const ServiceOptions& options);
  absl::Status prefetch();
  absl::Status serve(Worker& worker, const Request& request);

  const ServiceOptions options_;
  RequestQueue<Request> queue_;
  std::map<std::int64_t, std::unique_ptr<kiln::LayerNormFwdOp>> ops_;  // by width
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace serving

#endif  // KILN_EXAMPLES_SERVING_SERVICE_H_
