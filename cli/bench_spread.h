#ifndef KILN_CLI_BENCH_SPREAD_H_
#define KILN_CLI_BENCH_SPREAD_H_

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

// How benchmarks on the host write their figures (docs/benchmarks.md).
namespace kiln::bench {

using Json = nlohmann::ordered_json;

// {"median","p10","p90","count"} of microseconds, interpolated; `values` must not be empty.
inline Json spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    const double part = place - static_cast<double>(below);
    return values[below] * (1 - part) + values[above] * part;
  };
  return {{"median", at(0.5)}, {"p10", at(0.1)}, {"p90", at(0.9)}, {"count", values.size()}};
}

inline Json contender(const std::string& name, const std::string& clock,
                      std::vector<double> values) {
  return {{"name", name}, {"clock", clock}, {"us", spread_of(std::move(values))}};
}

}  // namespace kiln::bench

#endif  // KILN_CLI_BENCH_SPREAD_H_
