#ifndef KILN_RUNTIME_TUNE_STATISTICS_H_
#define KILN_RUNTIME_TUNE_STATISTICS_H_

#include <kiln/export.h>

#include <span>
#include <string>
#include <vector>

// The rules by which a sweep judges times (docs/tuning.md). Pure.
namespace kiln::internal {

// A sample's middle and width, both blind to a few outliers.
struct Spread {
  double median = 0;
  double sigma = 0;  // 1.4826 times the median distance from the median
  int samples = 0;
  KILN_EXPORT double error() const;  // standard error of the median
};
KILN_EXPORT Spread spread_of(std::vector<double> samples);

// The chance that a fair coin shows at least `wins` heads of `throws`.
KILN_EXPORT double sign_test(int wins, int throws);

// Pairs of one round each, of what is in force and of a challenger.
struct Pairs {
  Spread gain;  // of the differences: in force less challenger
  int wins = 0, losses = 0;
};
// REQUIRES: as many of both.
KILN_EXPORT Pairs compare_pairs(std::span<const double> in_force,
                                std::span<const double> challenger);

// Early stop: `candidate` has lost more of its pairs with `leader` than chance explains (sign test,
// 1 in 100), and by more than three standard errors of the median difference.
KILN_EXPORT bool cannot_win(std::span<const double> candidate, std::span<const double> leader);

struct Decision {
  bool replace = false;
  double default_seconds = 0, challenger_seconds = 0;  // medians
  double gain = 0, noise = 0;                          // seconds
  std::string text;
};
// The default is replaced only where the challenger won more fresh pairs than chance explains (sign
// test, 1 in 400), and gained more than the noise: three standard errors of the median difference,
// and at least `least_gain` of the default's time.
KILN_EXPORT Decision decide(std::span<const double> default_seconds,
                            std::span<const double> challenger_seconds, double least_gain);

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_TUNE_STATISTICS_H_
