#include "bench/gpu/device_timer.h"

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kiln::bench {

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&values](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {at(0.5), at(0.1), at(0.9), static_cast<int>(values.size())};
}

// A first call may build and load; three more say how long one takes; then more until the clocks
// are up.
absl::StatusOr<double> DeviceTimer::warm_up(CUstream stream, const Contender& contender,
                                            const TimerOptions& options) const {
  KILN_RETURN_IF_ERROR(contender.call());
  KILN_RETURN_IF_ERROR(session_.synchronize(stream));
  std::vector<double> us;
  for (int i = 0; i < 3; ++i) {
    KILN_ASSIGN_OR_RETURN(const double one, session_.event_us(stream, contender.call));
    us.push_back(one);
  }
  const absl::Time end = absl::Now() + absl::Milliseconds(options.warm_up_ms);
  while (absl::Now() < end) {
    for (int i = 0; i < 4; ++i) KILN_RETURN_IF_ERROR(contender.call());
    KILN_RETURN_IF_ERROR(session_.synchronize(stream));
  }
  return std::max(spread_of(us).median, 0.5);
}

absl::Status DeviceTimer::record_calls(CUstream stream, const Contender& contender,
                                       const TimerOptions& options, int iterations,
                                       std::uint64_t first_call) {
  for (int i = 0; i < iterations; ++i) {
    if (options.cold_l2) KILN_RETURN_IF_ERROR(session_.flush_l2(stream));
    KILN_RETURN_IF_ERROR(cupti_->begin_call(first_call + static_cast<std::uint64_t>(i)));
    const absl::Status called = contender.call();
    KILN_RETURN_IF_ERROR(cupti_->end_call());
    KILN_RETURN_IF_ERROR(called);
    KILN_RETURN_IF_ERROR(session_.synchronize(stream));
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceTimer::Sample> DeviceTimer::pass_by_records(CUstream stream,
                                                                 const Contender& contender,
                                                                 const TimerOptions& options,
                                                                 int iterations,
                                                                 std::size_t buffer_bytes) {
  const std::uint64_t first = next_call_;
  next_call_ += static_cast<std::uint64_t>(iterations);
  KILN_RETURN_IF_ERROR(cupti_->start(buffer_bytes));
  const absl::Status called = record_calls(stream, contender, options, iterations, first);
  auto work = cupti_->collect();
  KILN_RETURN_IF_ERROR(cupti_->stop());
  KILN_RETURN_IF_ERROR(called);
  KILN_RETURN_IF_ERROR(work.status());
  Sample sample;
  sample.clock = "cupti";
  for (int i = 0; i < iterations; ++i) {
    const DeviceWork one = (*work)[first + static_cast<std::uint64_t>(i)];
    const double us = contender.is_copy ? one.copy_us + one.kernel_us : one.kernel_us;
    if (us <= 0)
      return absl::DataLossError(
          absl::StrFormat("cupti: call %d of %d has no kernel record", i + 1, iterations));
    sample.us.push_back(us);
    sample.copy_us.push_back(contender.is_copy ? 0 : one.copy_us);
    sample.kernels = one.kernels;
  }
  return sample;
}

absl::StatusOr<DeviceTimer::Sample> DeviceTimer::pass_by_events(CUstream stream,
                                                                const Contender& contender,
                                                                const TimerOptions& options,
                                                                int iterations) const {
  Sample sample;
  sample.clock = "events";
  for (int i = 0; i < iterations; ++i) {
    if (options.cold_l2) KILN_RETURN_IF_ERROR(session_.flush_l2(stream));
    KILN_ASSIGN_OR_RETURN(const double us, session_.event_us(stream, contender.call));
    sample.us.push_back(us);
    sample.copy_us.push_back(0);
  }
  return sample;
}

// Lost records are never passed over: again with larger buffers, at last by events, which the
// sample then says.
absl::StatusOr<DeviceTimer::Sample> DeviceTimer::pass(CUstream stream, const Contender& contender,
                                                      const TimerOptions& options, int iterations) {
  std::size_t buffer_bytes = std::size_t{4} << 20;
  for (int attempt = 0; cupti_ != nullptr && attempt < 3; ++attempt, buffer_bytes *= 4) {
    auto sample = pass_by_records(stream, contender, options, iterations, buffer_bytes);
    if (sample.ok() || !absl::IsDataLoss(sample.status())) return sample;
  }
  return pass_by_events(stream, contender, options, iterations);
}

absl::StatusOr<Spread> DeviceTimer::graph_replay(CUstream stream, const Contender& contender,
                                                 double call_us) const {
  const int calls = call_us < 50 ? 20 : call_us < 1000 ? 4 : 1;
  KILN_ASSIGN_OR_RETURN(const auto graph, session_.record(stream, [&]() -> absl::Status {
    for (int i = 0; i < calls; ++i) KILN_RETURN_IF_ERROR(contender.call());
    return absl::OkStatus();
  }));
  const auto replay = [&] { return graph->launch(stream); };
  for (int i = 0; i < 3; ++i) KILN_RETURN_IF_ERROR(replay());
  KILN_RETURN_IF_ERROR(session_.synchronize(stream));
  std::vector<double> us;
  for (int i = 0; i < 15; ++i) {
    KILN_ASSIGN_OR_RETURN(const double all, session_.event_us(stream, replay));
    us.push_back(all / calls);
  }
  return spread_of(us);
}

std::vector<Timing> DeviceTimer::measure(CUstream stream, std::span<const Contender> contenders,
                                         const TimerOptions& options) {
  std::vector<Timing> timings(contenders.size());
  std::vector<Sample> samples(contenders.size());
  std::vector<double> call_us(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    timings[i].name = contenders[i].name;
    timings[i].bytes = contenders[i].bytes;
    auto us = warm_up(stream, contenders[i], options);
    if (us.ok()) call_us[i] = *us;
    timings[i].status = us.status();
  }
  const auto one_pass = [&](std::size_t i) {
    Timing& timing = timings[i];
    if (!timing.status.ok()) return;
    const double fitting = options.measure_ms * 1e3 / call_us[i];
    const int iterations = static_cast<int>(
        std::clamp<double>(fitting, options.min_iterations, options.max_iterations));
    auto sample = pass(stream, contenders[i], options, std::max(1, iterations / 2));
    timing.status = sample.status();
    if (!sample.ok()) return;
    timing.pass_us.push_back(spread_of(sample->us).median);
    // One pass without records makes the whole a measurement by events.
    timing.clock = timing.clock == "events" ? timing.clock : sample->clock;
    timing.kernels = sample->kernels;
    samples[i].us.insert(samples[i].us.end(), sample->us.begin(), sample->us.end());
    samples[i].copy_us.insert(samples[i].copy_us.end(), sample->copy_us.begin(),
                              sample->copy_us.end());
  };
  for (std::size_t i = 0; i < contenders.size(); ++i) one_pass(i);
  for (std::size_t i = contenders.size(); i-- > 0;) one_pass(i);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Timing& timing = timings[i];
    if (!timing.status.ok()) continue;
    timing.us = spread_of(samples[i].us);
    timing.copy_us = spread_of(samples[i].copy_us).median;
    if (!options.graph) continue;
    auto graph_us = graph_replay(stream, contenders[i], call_us[i]);
    timing.graph_status = graph_us.status();
    if (graph_us.ok()) timing.graph_us = *graph_us;
  }
  return timings;
}

}  // namespace kiln::bench
