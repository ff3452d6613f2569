#include "runtime/tune_statistics.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace kiln::internal {
namespace {

constexpr double kSigmaOfDistance = 1.4826;  // of a normal distribution
constexpr double kErrorOfMedian = 1.2533;    // the same: sqrt(pi / 2)
constexpr double kErrors = 3;
constexpr double kStopChance = 0.01;
constexpr double kReplaceChance = 1.0 / 400;

double median_of(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

double Spread::error() const {
  return samples == 0 ? 0 : kErrorOfMedian * sigma / std::sqrt(static_cast<double>(samples));
}

Spread spread_of(std::vector<double> samples) {
  Spread spread;
  spread.samples = static_cast<int>(samples.size());
  spread.median = median_of(samples);
  for (double& value : samples) value = std::fabs(value - spread.median);
  spread.sigma = kSigmaOfDistance * median_of(samples);
  return spread;
}

double sign_test(int wins, int throws) {
  double term = std::ldexp(1.0, -throws);  // of no heads at all
  double below = 0;
  for (int heads = 0; heads < wins; ++heads) {
    below += term;
    term *= static_cast<double>(throws - heads) / (heads + 1);
  }
  return std::max(0.0, 1 - below);
}

Pairs compare_pairs(std::span<const double> in_force, std::span<const double> challenger) {
  Pairs pairs;
  std::vector<double> differences;
  for (std::size_t i = 0; i < in_force.size() && i < challenger.size(); ++i) {
    differences.push_back(in_force[i] - challenger[i]);
    if (differences.back() > 0) ++pairs.wins;
    if (differences.back() < 0) ++pairs.losses;
  }
  pairs.gain = spread_of(std::move(differences));
  return pairs;
}

bool cannot_win(std::span<const double> candidate, std::span<const double> leader) {
  const Pairs pairs = compare_pairs(candidate, leader);
  return sign_test(pairs.wins, pairs.wins + pairs.losses) < kStopChance &&
         pairs.gain.median > kErrors * pairs.gain.error();
}

Decision decide(std::span<const double> default_seconds, std::span<const double> challenger_seconds,
                double least_gain) {
  const Pairs pairs = compare_pairs(default_seconds, challenger_seconds);
  Decision decision;
  decision.default_seconds = spread_of({default_seconds.begin(), default_seconds.end()}).median;
  decision.challenger_seconds =
      spread_of({challenger_seconds.begin(), challenger_seconds.end()}).median;
  decision.gain = pairs.gain.median;
  decision.noise =
      std::max(kErrors * pairs.gain.error(), least_gain * std::fabs(decision.default_seconds));
  const int rounds = pairs.wins + pairs.losses;
  const double chance = sign_test(pairs.wins, rounds);
  decision.replace = chance < kReplaceChance && decision.gain > decision.noise;
  decision.text = absl::StrFormat(
      "%s: faster in %d of %d pairs (by chance: %.2g), gain %.3g us where more than %.3g us of "
      "noise is wanted",
      decision.replace ? "replaces the default" : "the default stays", pairs.wins, rounds, chance,
      decision.gain * 1e6, decision.noise * 1e6);
  return decision;
}

}  // namespace kiln::internal
