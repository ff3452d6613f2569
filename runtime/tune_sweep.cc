#include "runtime/tune_sweep.h"

#include "runtime/guarded.h"
#include "runtime/tune_loading.h"
#include "runtime/tune_race.h"

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace kiln::internal {
namespace {

using Phase = TuneProgress::Phase;

constexpr int kMaxRepeats = 10000;   // of the work in one sample, warm
constexpr int kMaxColdRepeats = 10;  // cold: each flushes the cache first
constexpr int kHostTries = 5;        // of a sample: see `measure`
constexpr int kEstimates = 3;        // before the race
constexpr double kHopeless = 3;      // times the best estimate: not worth a place in the race

class Sweep {
 public:
  Sweep(const SweepSubject& subject, const TuneOptions& options, TuneReport& report)
      : s_(subject),
        options_(options),
        report_(report),
        deadline_(absl::Now() + absl::Seconds(options.budget_seconds)),
        launches_(subject.support) {}

  ~Sweep() {
    if (!has_stream_) return;
    // What a candidate enqueued must have ended before its code is unloaded.
    s_.support.synchronize(stream_).IgnoreError();
    for (Kernel* kernel : s_.kernels) kernel->publish(slot(), nullptr);
    call_.reset();
    s_.support.destroy_stream(stream_).IgnoreError();
  }

  absl::Status run(const std::vector<Config>& configs) {
    KILN_RETURN_IF_ERROR(prepare());
    begin(configs);
    KILN_RETURN_IF_ERROR(check_all());
    return race();
  }

 private:
  struct Candidate {
    std::optional<CandidateBuild> build;
    std::unique_ptr<Loaded> loaded;
    double estimate = 0;  // seconds of one run
  };

  int slot() const { return s_.device.index + kSweepIndex; }
  bool on_host() const { return s_.device.type == DeviceType::cpu(); }
  bool time_is_up() const { return absl::Now() >= deadline_; }

  void tell(Phase phase, std::size_t done, std::size_t i) const {
    if (!options_.progress) return;
    const std::string text =
        i < report_.candidates.size() ? to_string(report_.candidates[i].config) : std::string();
    options_.progress(
        {phase, report_.op, report_.implementation, text, done, report_.candidates.size()});
  }

  absl::Status prepare() {
    KILN_ASSIGN_OR_RETURN(stream_, s_.support.create_stream(s_.device.index));
    has_stream_ = true;
    KILN_ASSIGN_OR_RETURN(call_, TuneCall::make(s_.support, stream_, s_.signature, s_.args,
                                                s_.kernels, options_.seed));
    for (Kernel* kernel : s_.kernels) {
      const Loaded* in_force = kernel->loaded_on(s_.device.index);
      if (in_force == nullptr)
        return absl::FailedPreconditionError("a kernel of the call is not loaded on the device");
      auto copy = std::make_unique<Loaded>(*in_force);
      copy->support = &launches_;
      kernel->publish(slot(), std::move(copy));
    }
    flush_bytes_ = s_.kernel.tunes_warm() ? 0 : s_.support.cache_bytes(s_.device.index);
    report_.method = s_.support.measure_method() + (on_host() ? ", least of 5" : "") +
                     (flush_bytes_ > 0 ? ", cold" : ", warm");
    return absl::OkStatus();
  }

  void begin(const std::vector<Config>& configs) {
    for (const std::size_t i : search_order(configs.size(), options_)) {
      report_.candidates.emplace_back();
      report_.candidates.back().config = configs[i];
    }
    candidates_.resize(report_.candidates.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      TuneCandidate& candidate = report_.candidates[i];
      const auto excluded = std::find_if(
          options_.exclude.begin(), options_.exclude.end(), [&](const TuneExclusion& e) {
            return e.config == to_string(candidate.config) &&
                   (e.implementation.empty() || e.implementation == report_.implementation);
          });
      if (excluded != options_.exclude.end()) {
        out(i, CandidateState::excluded, excluded->reason);
        continue;
      }
      absl::StatusOr<CandidateBuild> build =
          begin_build(s_.runtime, s_.support, s_.facts, s_.kernel, candidate.config, s_.policy);
      if (build.ok())
        candidates_[i].build = *std::move(build);
      else
        out(i,
            absl::IsResourceExhausted(build.status()) ? CandidateState::pruned
                                                      : CandidateState::failed,
            message_of(build.status()));
    }
  }

  void out(std::size_t i, CandidateState state, std::string reason) {
    report_.candidates[i].state = state;
    report_.candidates[i].reason = std::move(reason);
    candidates_[i] = Candidate();
  }

  absl::Status end_build_of(std::size_t i) {
    const absl::Time mine = absl::Now() + absl::Seconds(options_.compile_seconds);
    // The default is waited for beyond the budget: without it there is nothing to compare with.
    return end_build(*candidates_[i].build, i == 0 ? mine : std::min(mine, deadline_),
                     report_.candidates[i]);
  }

  // Each candidate as it comes from the compiler, while those behind it still compile: does it run,
  // is its result right, and about how fast is it. Where the compiler and the device share
  // processors, all are compiled first.
  absl::Status check_all() {
    if (on_host()) compile_all();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!candidates_[i].build) {
        if (i == 0)
          return absl::FailedPreconditionError("default: " + report_.candidates[0].reason);
        continue;
      }
      if (i > 0 && time_is_up()) {
        report_.complete = false;
        candidates_[i] = Candidate();
        continue;
      }
      KILN_RETURN_IF_ERROR(compile_and_check(i));
    }
    return absl::OkStatus();
  }

  void compile_all() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!candidates_[i].build) continue;
      tell(Phase::compiling, i, i);
      end_build_of(i).IgnoreError();  // told when it is looked at
    }
  }

  // An error ends the sweep: the default's, or one after which the device does nothing more.
  absl::Status compile_and_check(std::size_t i) {
    if (!on_host()) tell(Phase::compiling, i, i);
    const absl::Status built = end_build_of(i);
    const std::string reason =
        built.ok() && i > 0 ? ruled_out(report_.candidates[i], report_.candidates[0], s_.facts)
                            : "";
    if (!reason.empty()) {
      out(i, CandidateState::pruned, reason);
      return absl::OkStatus();
    }
    tell(Phase::checking, i, i);
    const absl::Status checked = built.ok() ? check(i) : built;
    if (checked.ok()) return absl::OkStatus();
    if (i == 0) return annotate(checked, "default");
    out(i, absl::IsDataLoss(checked) ? CandidateState::wrong : CandidateState::failed,
        message_of(checked));
    return absl::IsAborted(checked) ? stays(i, checked) : absl::OkStatus();
  }

  static absl::Status with_advice(const absl::Status& status) {
    return absl::AbortedError(
        message_of(status) +
        "; the device's error stays, and nothing works in this process any more: tune with `kiln "
        "tune`, which sweeps in a process of its own");
  }
  absl::Status stays(std::size_t i, const absl::Status& status) const {
    return with_advice(annotate(status, "candidate " + to_string(report_.candidates[i].config)));
  }

  // Runs candidate `i` once on fresh tensors and once more to see how long it takes.
  absl::Status check(std::size_t i) {
    Candidate& candidate = candidates_[i];
    TuneCandidate& shown = report_.candidates[i];
    KILN_RETURN_IF_ERROR(load(i));
    put(i);
    launches_.block_threads = launches_.smem_bytes = 0;
    KILN_RETURN_IF_ERROR(call_->reset());
    KILN_RETURN_IF_ERROR(run_once());
    KILN_RETURN_IF_ERROR(s_.support.synchronize(stream_));
    if (shown.smem_bytes >= 0)
      shown.smem_bytes = std::max<std::int64_t>(shown.smem_bytes, launches_.smem_bytes);
    shown.occupancy =
        occupancy_of(s_.facts, shown.registers, shown.smem_bytes, launches_.block_threads);
    KILN_RETURN_IF_ERROR(i == 0 ? call_->keep_result()
                                : call_->check_result(s_.signature.tolerance_steps));
    double best = 0;
    for (int k = 0; k < kEstimates; ++k) {
      KILN_ASSIGN_OR_RETURN(const double seconds, measure(1));
      best = k == 0 ? seconds : std::min(best, seconds);
    }
    candidate.estimate = best;
    shown.seconds = best;
    return absl::OkStatus();
  }

  // Loads candidate `i`, anew where it is loaded already.
  absl::Status load(std::size_t i) {
    KILN_ASSIGN_OR_RETURN(candidates_[i].loaded,
                          load_candidate(*candidates_[i].build, s_.support, launches_,
                                         s_.device.index, s_.facts, report_.candidates[i].config));
    return absl::OkStatus();
  }

  // The same for a candidate that is measured next: its first run, which pays for more than the
  // others, is done.
  absl::Status load_anew(std::size_t i) {
    KILN_RETURN_IF_ERROR(load(i));
    put(i);
    KILN_RETURN_IF_ERROR(run_once());
    return s_.support.synchronize(stream_);
  }

  // Makes candidate `i` what the sweep's streams launch.
  void put(std::size_t i) {
    s_.kernel.publish(slot(), std::make_unique<Loaded>(*candidates_[i].loaded));
  }

  absl::Status run_once() {
    return guarded(report_.implementation, [&] {
      return s_.run(sweep_stream(stream_), call_->inputs(), call_->outputs());
    });
  }

  // One sample. On a host, where other processes take the processor away and only ever add time,
  // the least of a few.
  absl::StatusOr<double> measure(int repeats) {
    double least = 0;
    for (int k = 0; k < (on_host() ? kHostTries : 1); ++k) {
      KILN_ASSIGN_OR_RETURN(const double seconds,
                            s_.support.measure(
                                stream_, [this] { return run_once(); }, repeats, flush_bytes_));
      least = k == 0 ? seconds : std::min(least, seconds);
    }
    return least;
  }

  absl::Status race() {
    std::vector<std::size_t> runners;  // candidates, by their place in the race
    double best = 0;
    for (const Candidate& candidate : candidates_) {
      if (candidate.loaded && (best == 0 || candidate.estimate < best)) best = candidate.estimate;
    }
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!candidates_[i].loaded) continue;
      if (i > 0 && candidates_[i].estimate > kHopeless * best) {
        out(i, CandidateState::stopped,
            absl::StrFormat("the best of %d first runs took more than %g times the fastest's",
                            kEstimates, kHopeless));
        continue;
      }
      runners.push_back(i);
    }
    std::vector<Racer> racers(runners.size());
    const int most = flush_bytes_ > 0 ? kMaxColdRepeats : kMaxRepeats;
    const int repeats = best <= 0 ? most
                                  : static_cast<int>(std::clamp(options_.sample_seconds / best, 1.0,
                                                                static_cast<double>(most)));
    std::size_t samples = 0;
    const auto sample = [&](std::size_t racer) {
      put(runners[racer]);
      tell(Phase::timing, samples++, runners[racer]);
      return measure(repeats);
    };
    Race the_race(
        racers, options_, searches_by_halving(candidates_.size(), options_), sample,
        [&](std::size_t racer) { return load_anew(runners[racer]); },
        [this] { return time_is_up(); });
    const absl::StatusOr<RaceResult> result = the_race.run();
    for (std::size_t r = 0; r < racers.size(); ++r) show(racers[r], runners[r]);
    if (absl::IsAborted(result.status())) return with_advice(result.status());
    KILN_RETURN_IF_ERROR(result.status());
    report_.complete &= result->complete;
    report_.default_seconds = result->decision.default_seconds;
    report_.winner_seconds = result->decision.replace ? result->decision.challenger_seconds
                                                      : result->decision.default_seconds;
    report_.gain_seconds = result->decision.gain;
    report_.noise_seconds = result->decision.noise;
    report_.decision = result->decision.text;
    report_.winner =
        report_.candidates[result->decision.replace ? runners[result->best] : 0].config;
    return absl::OkStatus();
  }

  void show(const Racer& racer, std::size_t i) {
    TuneCandidate& candidate = report_.candidates[i];
    const Spread spread = spread_of(racer.samples);
    candidate.state = racer.state;
    candidate.reason = racer.reason;
    candidate.samples = spread.samples;
    if (spread.samples == 0) return;
    candidate.seconds = spread.median;
    candidate.spread_seconds = spread.sigma;
  }

  const SweepSubject& s_;
  const TuneOptions& options_;
  TuneReport& report_;
  const absl::Time deadline_;
  SweepLaunches launches_;
  Stream stream_;
  bool has_stream_ = false;
  std::unique_ptr<TuneCall> call_;
  std::size_t flush_bytes_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace

void sweep(const SweepSubject& subject, const std::vector<Config>& configs,
           const TuneOptions& options, TuneReport& report) {
  const absl::Time start = absl::Now();
  report.winner = configs.front();
  report.seed = options.seed;
  Sweep one(subject, options, report);
  report.status = one.run(configs);
  if (!report.status.ok()) report.winner = configs.front();
  report.sweep_seconds = absl::ToDoubleSeconds(absl::Now() - start);
}

}  // namespace kiln::internal
