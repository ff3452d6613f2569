#include "service.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace serving {

// What one thread works with.
struct Service::Worker {
  kiln::DeviceSupport* support = nullptr;
  kiln::Stream stream;
  kiln::OwnedTensor x, y;      // device memory for the largest request
  std::vector<float> in, out;  // and host memory

  static absl::StatusOr<std::unique_ptr<Worker>> make(const ServiceOptions& options) {
    auto worker = std::make_unique<Worker>();
    KILN_ASSIGN_OR_RETURN(worker->support,
                          kiln::Runtime::instance().device_support(options.device.type));
    KILN_ASSIGN_OR_RETURN(worker->stream, worker->support->create_stream(options.device.index));
    const std::int64_t size =
        options.rows_max * *std::max_element(options.widths.begin(), options.widths.end());
    for (kiln::OwnedTensor* tensor : {&worker->x, &worker->y}) {
      KILN_ASSIGN_OR_RETURN(*tensor, kiln::OwnedTensor::allocate(*worker->support, worker->stream,
                                                                 kiln::DType::float32, {size}));
    }
    worker->out.resize(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i)
      worker->in.push_back(static_cast<float>(i * 7919 % 1000) * 0.001F);
    return worker;
  }
  ~Worker() {
    if (support == nullptr) return;
    support->synchronize(stream).IgnoreError();
    x = {};
    y = {};
    support->destroy_stream(stream).IgnoreError();
  }
};

Service::Service(const ServiceOptions& options)
    : options_(options), queue_(options.queue_capacity) {}

absl::StatusOr<std::unique_ptr<Service>> Service::start(const ServiceOptions& options) {
  std::unique_ptr<Service> service(new Service(options));
  kiln::Runtime::instance().load_backends();
  for (std::int64_t width : options.widths) {
    KILN_ASSIGN_OR_RETURN(service->ops_[width],
                          kiln::LayerNormFwdOp::create({.normalized_shape = {width}}));
  }
  for (int i = 0; i < options.workers; ++i) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::make(options));
    service->workers_.push_back(std::move(worker));
  }
  if (options.prefetch) KILN_RETURN_IF_ERROR(service->prefetch());
  KILN_RETURN_IF_ERROR(service->check_health());
  for (const auto& worker : service->workers_) {
    service->threads_.emplace_back([service = service.get(), worker = worker.get()] {
      while (const std::optional<Request> request = service->queue_.pop())
        request->done(service->serve(*worker, *request));
    });
  }
  return service;
}

Service::~Service() {
  queue_.close();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status Service::prefetch() {
  std::vector<std::shared_future<absl::Status>> built;
  for (const auto& [width, op] : ops_) {
    const kiln::ArgSpec rows = kiln::contiguous_arg(
        {options_.device, kiln::DType::float32, kiln::Dims{options_.rows_max, width}});
    kiln::CallArgs args;
    args.inputs = {rows, std::nullopt, std::nullopt};
    args.outputs = {rows};
    built.push_back(op->prefetch(args, options_.device));
  }
  for (const auto& one : built) KILN_RETURN_IF_ERROR(one.get());
  return absl::OkStatus();
}

absl::Status Service::check_health() {
  const std::int64_t width = *std::max_element(options_.widths.begin(), options_.widths.end());
  return serve(*workers_.front(), Request{.rows = 1, .width = width, .due = {}, .done = {}});
}

absl::Status Service::serve(Worker& worker, const Request& request) {
  const auto op = ops_.find(request.width);
  if (op == ops_.end() || request.rows < 1 || request.rows > options_.rows_max) {
    return absl::InvalidArgumentError("no such rows are served: " + std::to_string(request.rows) +
                                      " of " + std::to_string(request.width));
  }
  const kiln::Dims shape{request.rows, request.width};
  const auto view = [&](const kiln::OwnedTensor& memory) {
    return kiln::Tensor::contiguous(memory.tensor().data, options_.device, kiln::DType::float32,
                                    shape);
  };
  const std::size_t bytes = static_cast<std::size_t>(kiln::numel(shape)) * sizeof(float);
  kiln::DeviceSupport& support = *worker.support;
  KILN_RETURN_IF_ERROR(
      support.copy_to_device(worker.stream, worker.x.tensor().data, worker.in.data(), bytes));
  KILN_RETURN_IF_ERROR(
      op->second->forward(worker.stream, view(worker.x), nullptr, nullptr, view(worker.y)));
  KILN_RETURN_IF_ERROR(
      support.copy_to_host(worker.stream, worker.out.data(), worker.y.tensor().data, bytes));
  KILN_RETURN_IF_ERROR(support.synchronize(worker.stream));
  // A normalized row has the mean 0. A service that answers fast and wrong is of no use.
  double sum = 0;
  for (std::int64_t i = 0; i < request.width; ++i) sum += worker.out[static_cast<std::size_t>(i)];
  if (std::fabs(sum) <= 1e-3 * static_cast<double>(request.width)) return absl::OkStatus();
  return absl::InternalError("the result is wrong: the first row's sum is " + std::to_string(sum));
}

}  // namespace serving
