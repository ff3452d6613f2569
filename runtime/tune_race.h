#ifndef KILN_RUNTIME_TUNE_RACE_H_
#define KILN_RUNTIME_TUNE_RACE_H_

#include <kiln/export.h>
#include <kiln/tune.h>

#include "runtime/tune_statistics.h"

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kiln::internal {

// Which candidates of `count` are tried, in what order; candidate 0 is the default and always the
// first. The same arguments give the same order on every machine.
KILN_EXPORT std::vector<std::size_t> search_order(std::size_t count, const TuneOptions& options);
// Whether `count` candidates are searched by halving.
KILN_EXPORT bool searches_by_halving(std::size_t count, const TuneOptions& options);

// A candidate in the race; the first is the default.
struct Racer {
  CandidateState state = CandidateState::measured;  // any other: it is out
  std::string reason;
  std::vector<double> samples;  // one a round
};

struct RaceResult {
  std::size_t best = 0;  // the challenger: the fastest but the default; 0: there is none
  Decision decision;
  bool complete = true;  // false: time was up before the rounds were done
};

// Measures racers in interleaved rounds, back and forth so that drift hits all alike, and drops
// those that cannot win; with halving, also the slower half after each rung. Then the default and
// the fastest run fresh pairs, which alone decide: what chose the challenger does not judge it too.
// Both are loaded anew for each pair. Where an image lies in memory makes a difference that lasts
// as long as it is loaded, so pairs of one load would repeat one draw, and be taken for certainty.
// Which of the two is loaded first, and which runs first, is balanced over the pairs: of two that
// are the same code neither is favoured, whatever places do.
//
// `sample` gives the seconds of one sample, `load_anew` replaces what a racer runs by a fresh load
// of the same image; an error puts that racer out, but of the default and of a device error that
// stays (Aborted) it ends the race. `time_is_up` is asked between samples; the decision is always
// run.
class KILN_EXPORT Race {
 public:
  using Sample = std::function<absl::StatusOr<double>(std::size_t racer)>;
  using LoadAnew = std::function<absl::Status(std::size_t racer)>;
  Race(std::vector<Racer>& racers, const TuneOptions& options, bool halving, Sample sample,
       LoadAnew load_anew, std::function<bool()> time_is_up)
      : racers_(racers),
        options_(options),
        halving_(halving),
        sample_(std::move(sample)),
        load_anew_(std::move(load_anew)),
        time_is_up_(std::move(time_is_up)) {}

  absl::StatusOr<RaceResult> run();

 private:
  std::vector<std::size_t> alive() const;
  absl::Status round(bool backwards);
  void drop_losers();
  void halve();
  std::size_t fastest(bool but_default) const;
  absl::Status decide_pairs(RaceResult& result);
  absl::Status out(std::size_t racer, const absl::Status& why);

  std::vector<Racer>& racers_;
  const TuneOptions& options_;
  const bool halving_;
  const Sample sample_;
  const LoadAnew load_anew_;
  const std::function<bool()> time_is_up_;
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_RACE_H_
