#include "load.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>

namespace serving {

LoadResult run_load(Service& service, const ServiceOptions& served, const LoadOptions& options) {
  std::mt19937_64 random(options.seed);
  std::exponential_distribution<double> gap(options.per_second);
  std::uniform_int_distribution<std::size_t> width(0, served.widths.size() - 1);
  std::uniform_int_distribution<std::int64_t> rows(1, served.rows_max);

  LoadResult result;
  std::mutex mutex;
  std::condition_variable answered;
  int in_flight = 0;
  std::vector<double> latencies(static_cast<std::size_t>(options.requests), -1);
  double due_s = 0;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options.requests; ++i) {
    due_s += gap(random);
    Request request{
        .rows = rows(random), .width = served.widths[width(random)], .due = {}, .done = {}};
    request.due =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(due_s));
    request.done = [&, i, due = request.due](const absl::Status& status) {
      const std::chrono::duration<double, std::milli> took = Clock::now() - due;
      const std::lock_guard lock(mutex);
      if (status.ok()) latencies[static_cast<std::size_t>(i)] = took.count();
      if (!status.ok() && result.failed++ == 0) result.first_error = kiln::message_of(status);
      --in_flight;
      answered.notify_all();
    };
    std::this_thread::sleep_until(request.due);
    {
      const std::lock_guard lock(mutex);
      ++in_flight;
    }
    if (service.submit(std::move(request))) continue;
    const std::lock_guard lock(mutex);
    --in_flight;
    ++result.refused;
  }
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return in_flight == 0; });
  for (double latency : latencies) {
    if (latency >= 0) result.latencies_ms.push_back(latency);
  }
  return result;
}

double percentile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = std::ceil(p * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<std::size_t>(
      std::clamp(at, 0.0, static_cast<double>(sorted.size() - 1)))];
}

}  // namespace serving
