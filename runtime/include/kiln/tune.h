#ifndef KILN_TUNE_H_
#define KILN_TUNE_H_

#include <kiln/device.h>
#include <kiln/export.h>
#include <kiln/kernel.h>
#include <kiln/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// Tuning mode: what a sweep of a kernel's configurations is asked and what it found
// (docs/tuning.md).
namespace kiln::inline v1 {

enum class SearchPolicy {
  automatic,   // exhaustive up to TuneOptions::exhaustive_limit candidates, else halving
  exhaustive,  // every candidate
  halving,     // a seeded random sample, of which the slower half goes after each rung
};
KILN_EXPORT std::string_view to_string(SearchPolicy policy);

// What became of a candidate.
enum class CandidateState {
  waiting,   // not reached: the budget or the sweep ended before
  measured,  // ran to the end of the sweep
  stopped,   // measured until it could not win any more
  pruned,    // never run: what the compiler reports, or the device's limits, rule it out
  failed,    // did not compile, load or run
  wrong,     // its result differs from the default's by more than the op's tolerance
  excluded,  // ruled out by the caller (`TuneOptions::exclude`)
};
KILN_EXPORT std::string_view to_string(CandidateState state);

struct TuneCandidate {
  Config config;
  CandidateState state = CandidateState::waiting;
  std::string reason;         // why it is out; empty for one that is not
  double seconds = 0;         // median
  double spread_seconds = 0;  // robust standard deviation of one sample
  int samples = 0;
  std::int64_t registers = -1;    // per thread, most of its kernels; -1: not known
  std::int64_t spill_bytes = -1;  // per thread
  std::int64_t smem_bytes = -1;   // static and dynamic, of a block
  double occupancy = -1;  // resident warps of those a multiprocessor can hold; -1: not known
};

// One sweep of one kernel on one device, or the record that made it unnecessary.
struct TuneReport {
  std::string op, implementation, identity, identity_text;
  std::size_t kernel = 0;  // which of the entry's kernels
  Device device;
  std::string problem;  // the call that was measured, as text
  absl::Status status;  // not ok: nothing was decided, and the default stays
  bool from_record = false;
  bool complete = true;  // false: the budget ended the search early
  Config default_config, winner;
  double default_seconds = 0, winner_seconds = 0;  // medians of the deciding rounds
  double gain_seconds = 0;   // median of the paired differences, default less winner
  double noise_seconds = 0;  // what the gain had to exceed
  std::string decision;      // in words, with the figures
  std::string method;        // how time was told
  std::uint64_t seed = 0;
  double sweep_seconds = 0;
  std::vector<TuneCandidate> candidates;  // in the order of the search; the default is the first
};

struct TuneProgress {
  enum class Phase { compiling, checking, timing, deciding, done } phase = Phase::compiling;
  std::string_view op, implementation;
  std::string_view candidate;  // its configuration as text; empty where all are meant
  std::size_t done = 0, total = 0;
};
KILN_EXPORT std::string_view to_string(TuneProgress::Phase phase);

struct TuneExclusion {
  std::string implementation;  // empty: of any
  std::string config;          // as text
  std::string reason;
};

struct TuneOptions {
  SearchPolicy policy = SearchPolicy::automatic;
  std::size_t exhaustive_limit = 64;
  std::size_t sample_size = 64;  // candidates that halving begins with, the default among them
  std::uint64_t seed = 1;        // the same seed, the same order
  double budget_seconds = 60;    // of one kernel's sweep, compiling included
  double compile_seconds = 60;   // that one candidate may take to compile
  double sample_seconds = 1e-3;  // a sample repeats the work for about as long
  int rounds = 15;               // samples of a candidate at most, before the decision
  int deciding_rounds = 20;      // pairs of default and best that decide, each loaded anew
  double least_gain = 0.005;     // of the default's time: less is never worth a change
  bool force = false;            // sweep although a record is there
  bool store = true;             // keep the winner in the cache folder
  // Candidates that are out, and why: for a caller that knows that one faults or hangs.
  std::vector<TuneExclusion> exclude;
  // Called by the thread that sweeps.
  std::function<void(const TuneProgress&)> progress;
  // Where ranks must agree: given what this rank would choose, returns what all of them use, one of
  // the candidates. Called once for each sweep that ended well. Null: this rank's own choice.
  std::function<Config(const TuneReport& mine)> agree;
};

}  // namespace kiln::inline v1

#endif  // KILN_TUNE_H_
