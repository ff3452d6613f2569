#include "runtime/tune_record.h"

#include "base/hash128.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln::inline v1 {

std::string_view to_string(SearchPolicy policy) {
  switch (policy) {
    case SearchPolicy::automatic:
      return "automatic";
    case SearchPolicy::exhaustive:
      return "exhaustive";
    case SearchPolicy::halving:
      return "halving";
  }
  return "invalid";
}

std::string_view to_string(CandidateState state) {
  switch (state) {
    case CandidateState::waiting:
      return "waiting";
    case CandidateState::measured:
      return "measured";
    case CandidateState::stopped:
      return "stopped";
    case CandidateState::pruned:
      return "pruned";
    case CandidateState::failed:
      return "failed";
    case CandidateState::wrong:
      return "wrong";
    case CandidateState::excluded:
      return "excluded";
  }
  return "invalid";
}

std::string_view to_string(TuneProgress::Phase phase) {
  switch (phase) {
    case TuneProgress::Phase::compiling:
      return "compiling";
    case TuneProgress::Phase::checking:
      return "checking";
    case TuneProgress::Phase::timing:
      return "timing";
    case TuneProgress::Phase::deciding:
      return "deciding";
    case TuneProgress::Phase::done:
      return "done";
  }
  return "invalid";
}

}  // namespace kiln::inline v1

namespace kiln::internal {
namespace {

std::string hash_of(const std::vector<std::string>& fields) {
  std::string bytes;
  for (const std::string& field : fields) append_length_prefixed(bytes, field);
  return to_hex(hash128(bytes));
}

std::string text_of(const CompilerId& id) { return id.name + " " + id.build + " " + id.headers; }

// "": the same, or one of them is not known.
std::string difference(std::string_view what, const std::string& had, const std::string& now) {
  if (had == now || had.empty() || now.empty()) return "";
  return absl::StrFormat("%s changed: it was measured with %s, here is %s", what, had, now);
}

int samples_of(const TuneRecord& record) {
  int samples = 0;
  for (const TuneCandidate& candidate : record.report.candidates) samples += candidate.samples;
  return samples;
}

}  // namespace

std::string record_name(const TuneKey& key) {
  return hash_of({key.op, key.implementation, absl::StrFormat("%d", key.kernel), key.identity,
                  key.device_type, absl::StrFormat("%d", key.facts.arch),
                  absl::StrFormat("%d", key.facts.sm_count),
                  absl::StrFormat("%d", key.facts.smem_budget), key.facts.calibration});
}

std::string hash_of_space(const std::vector<Config>& configs) {
  std::vector<std::string> texts;
  for (const Config& config : configs) texts.push_back(to_string(config));
  std::sort(texts.begin(), texts.end());
  return hash_of(texts);
}

std::string stale_reason(const TuneRecord& record, const TuneKey& key, const TuneConditions& now) {
  if (!(record.key == key)) return "it is of another kernel or board";
  const TuneConditions& then = record.conditions;
  const std::string toolkit_then = then.toolkit == CompilerId() ? "" : text_of(then.toolkit);
  const std::string toolkit_now = now.toolkit == CompilerId() ? "" : text_of(now.toolkit);
  for (const std::string& reason : {difference("the source", then.source, now.source),
                                    difference("the configuration space", then.space, now.space),
                                    difference("the toolkit", toolkit_then, toolkit_now),
                                    difference("the driver", then.driver, now.driver)}) {
    if (!reason.empty()) return reason;
  }
  return "";
}

const TuneRecord& better_measured(const TuneRecord& a, const TuneRecord& b) {
  if (a.report.complete != b.report.complete) return a.report.complete ? a : b;
  return samples_of(b) > samples_of(a) ? b : a;
}

}  // namespace kiln::internal
