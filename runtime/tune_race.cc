#include "runtime/tune_race.h"

#include <kiln/status.h>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <random>
#include <utility>

namespace kiln::internal {
namespace {

constexpr int kFirstRung = 3;          // rounds before the first halving
constexpr std::size_t kFinalists = 4;  // so few are not halved any more

}  // namespace

bool searches_by_halving(std::size_t count, const TuneOptions& options) {
  if (options.policy == SearchPolicy::automatic) return count > options.exhaustive_limit;
  return options.policy == SearchPolicy::halving;
}

std::vector<std::size_t> search_order(std::size_t count, const TuneOptions& options) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  if (!searches_by_halving(count, options)) return order;
  // By hand: what std::shuffle makes of a seed is the library's own affair.
  std::mt19937_64 random(options.seed);
  for (std::size_t i = 1; i + 1 < count; ++i) {
    std::swap(order[i], order[i + static_cast<std::size_t>(random() % (count - i))]);
  }
  order.resize(std::min(count, std::max<std::size_t>(1, options.sample_size)));
  return order;
}

std::vector<std::size_t> Race::alive() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < racers_.size(); ++i) {
    if (racers_[i].state == CandidateState::measured) out.push_back(i);
  }
  return out;
}

absl::Status Race::round(bool backwards) {
  std::vector<std::size_t> order = alive();
  if (backwards) std::reverse(order.begin(), order.end());
  for (const std::size_t i : order) {
    const absl::StatusOr<double> seconds = sample_(i);
    if (seconds.ok()) {
      racers_[i].samples.push_back(*seconds);
      continue;
    }
    out(i, seconds.status()).IgnoreError();
    if (i == 0 || absl::IsAborted(seconds.status())) return seconds.status();
  }
  return absl::OkStatus();
}

std::size_t Race::fastest(bool but_default) const {
  std::size_t best = 0;
  double seconds = 0;
  for (const std::size_t i : alive()) {
    if (but_default && i == 0) continue;
    const double median = spread_of(racers_[i].samples).median;
    const bool is_first = best == 0 && seconds == 0;
    if (is_first || median < seconds) {
      best = i;
      seconds = median;
    }
  }
  return best;
}

void Race::drop_losers() {
  const std::size_t leader = fastest(/*but_default=*/false);
  for (const std::size_t i : alive()) {
    if (i == 0 || i == leader || !cannot_win(racers_[i].samples, racers_[leader].samples)) continue;
    racers_[i].state = CandidateState::stopped;
    racers_[i].reason = absl::StrFormat("slower than another after %d rounds, beyond chance",
                                        racers_[i].samples.size());
  }
}

void Race::halve() {
  std::vector<std::size_t> order = alive();
  std::erase(order, 0);
  std::vector<std::pair<double, std::size_t>> medians;
  for (const std::size_t i : order) medians.emplace_back(spread_of(racers_[i].samples).median, i);
  std::sort(medians.begin(), medians.end());
  for (std::size_t i = std::max(kFinalists, (medians.size() + 1) / 2); i < medians.size(); ++i) {
    Racer& racer = racers_[medians[i].second];
    racer.state = CandidateState::stopped;
    racer.reason = absl::StrFormat("in the slower half after %d rounds",
                                   static_cast<int>(racer.samples.size()));
  }
}

absl::Status Race::out(std::size_t racer, const absl::Status& why) {
  racers_[racer].state = CandidateState::failed;
  racers_[racer].reason = message_of(why);
  return why;
}

absl::Status Race::decide_pairs(RaceResult& result) {
  std::vector<double> in_force, challenger;
  const std::size_t both[] = {0, result.best};
  for (int i = 0; i < options_.deciding_rounds; ++i) {
    const int loaded_first = (i / 2) % 2, run_first = i % 2;
    for (const int side : {loaded_first, 1 - loaded_first}) {
      const absl::Status loaded = load_anew_(both[side]);
      if (!loaded.ok()) return out(both[side], loaded);
    }
    double seconds[2] = {};
    for (const int side : {run_first, 1 - run_first}) {
      const absl::StatusOr<double> sample = sample_(both[side]);
      if (!sample.ok()) return out(both[side], sample.status());
      seconds[side] = *sample;
    }
    in_force.push_back(seconds[0]);
    challenger.push_back(seconds[1]);
  }
  result.decision = decide(in_force, challenger, options_.least_gain);
  return absl::OkStatus();
}

absl::StatusOr<RaceResult> Race::run() {
  RaceResult result;
  int rung = halving_ ? kFirstRung : options_.rounds;
  for (int i = 0; i < options_.rounds; ++i) {
    if (i > 0 && time_is_up_()) {
      result.complete = false;
      break;
    }
    KILN_RETURN_IF_ERROR(round(i % 2 == 1));
    drop_losers();
    if (halving_ && i + 1 == rung) {
      halve();
      rung *= 2;
    }
    const std::vector<std::size_t> left = alive();
    if (left.size() == 1 || (left.size() == 2 && left[0] == 0 && i + 1 >= kFirstRung)) break;
  }
  // A challenger that fails in the deciding rounds leaves them to the next best.
  while (true) {
    result.best = fastest(/*but_default=*/true);
    if (result.best == 0) {
      result.decision = Decision{};
      result.decision.default_seconds = result.decision.challenger_seconds =
          spread_of(racers_[0].samples).median;
      result.decision.text = "the default stays: no other candidate was left";
      return result;
    }
    const absl::Status decided = decide_pairs(result);
    if (decided.ok()) return result;
    if (racers_[0].state != CandidateState::measured || absl::IsAborted(decided)) return decided;
  }
}

}  // namespace kiln::internal
