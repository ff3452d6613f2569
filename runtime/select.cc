#include "runtime/select.h"

#include "runtime/messages.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>

namespace kiln::internal {
namespace {

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool prefers(const KernelRow& winner, const KernelRow& loser) {
  return contains(winner.type.preferred_over, loser.key);
}

std::string device_type_names(const std::vector<DeviceType>& types) {
  return absl::StrJoin(types, ", ",
                       [](std::string* out, DeviceType t) { out->append(std::string(t.name())); });
}

// Why `row` cannot run on the device; empty when it can.
std::string unavailable_reason(const KernelRow& row, DeviceType type, const DeviceFacts& facts) {
  if (!contains(row.type.devices, type)) {
    return absl::StrFormat("runs on %s, not on %s", device_type_names(row.type.devices),
                           std::string(type.name()));
  }
  if (!row.type.supported_archs.empty() && !contains(row.type.supported_archs, facts.arch)) {
    return absl::StrFormat("supports archs %s, got %d",
                           absl::StrJoin(row.type.supported_archs, ", "), facts.arch);
  }
  return "";
}

// A refusal of plugin code; an exception of its own is a reason, too.
Refusal refusal_of(const KernelRow& row, CallRef call) {
  try {
    return row.type.refusal(call);
  } catch (const std::exception& e) {
    return std::string("refusal threw: ") + e.what();
  } catch (...) {
    return std::string("refusal threw");
  }
}

// The keys of a cycle of preferences that `row` is on; empty when it is on none.
bool find_cycle(const std::map<std::string, const KernelRow*>& by_key, const KernelRow& row,
                std::vector<std::string>& path, std::set<std::string>& done) {
  if (const auto at = std::find(path.begin(), path.end(), row.key); at != path.end()) {
    path.erase(path.begin(), at);
    return true;
  }
  if (done.count(row.key) > 0) return false;
  path.push_back(row.key);
  for (const std::string& key : row.type.preferred_over) {
    const auto next = by_key.find(key);
    if (next != by_key.end() && find_cycle(by_key, *next->second, path, done)) return true;
  }
  path.pop_back();
  done.insert(row.key);
  return false;
}

std::string verdict_lines(const std::vector<Verdict>& verdicts) {
  std::string out;
  for (const Verdict& v : verdicts) {
    out += absl::StrFormat("\n  %s (%s): %s", v.key, v.origin, v.reason);
  }
  return out;
}

// Marks all but one of `served` as lower, by the rules of the design, section 3. Returns what is
// left.
std::vector<std::size_t> narrow(const Candidates& candidates,
                                const std::vector<std::size_t>& served,
                                std::vector<Verdict>& verdicts) {
  const auto& rows = candidates.rows;
  for (const std::string& wanted : candidates.prefer) {
    const auto at = std::find_if(served.begin(), served.end(),
                                 [&](std::size_t i) { return rows[i].key == wanted; });
    if (at == served.end()) continue;
    for (std::size_t i : served) {
      if (i != *at) verdicts[i].reason = absl::StrFormat("the user prefers %s", wanted);
    }
    return {*at};
  }
  std::vector<std::size_t> left;
  for (std::size_t i : served) {
    const auto beats = [&](std::size_t j) {
      if (i == j || rows[j].type.general) return false;
      return rows[i].type.general || prefers(rows[j], rows[i]);
    };
    const auto winner = std::find_if(served.begin(), served.end(), beats);
    if (winner == served.end()) {
      left.push_back(i);
    } else {
      verdicts[i].reason = rows[i].type.general
                               ? absl::StrFormat("general: below %s", rows[*winner].key)
                               : absl::StrFormat("%s is preferred over it", rows[*winner].key);
    }
  }
  return left;
}

}  // namespace

absl::Status check_candidates(const Candidates& candidates) {
  std::map<std::string, const KernelRow*> by_key;
  std::vector<std::string> general;
  for (const KernelRow& row : candidates.rows) {
    by_key[row.key] = &row;
    if (row.type.general) general.push_back(row.key);
  }
  if (general.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %s %s: %s", candidates.op, candidates.interface_type,
                        kMoreThanOneGeneral, absl::StrJoin(general, ", ")));
  }
  for (const KernelRow& row : candidates.rows) {
    if (row.type.general && !row.type.preferred_over.empty()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: %s: %s, got preferred_over = {%s} (from %s)", candidates.op, row.key,
          kGeneralDeclaresPreference, absl::StrJoin(row.type.preferred_over, ", "), row.origin));
    }
  }
  std::set<std::string> done;
  for (const KernelRow& row : candidates.rows) {
    std::vector<std::string> path;
    if (find_cycle(by_key, row, path, done)) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: %s: %s %s", candidates.op,
                                                        candidates.interface_type, kPreferenceCycle,
                                                        absl::StrJoin(path, ", ")));
    }
  }
  return absl::OkStatus();
}

bool any_runs_on(const Candidates& candidates, DeviceType type) {
  return std::any_of(candidates.rows.begin(), candidates.rows.end(),
                     [&](const KernelRow& row) { return contains(row.type.devices, type); });
}

Selection select(const Candidates& candidates, DeviceType type, const DeviceFacts& facts,
                 CallRef call) {
  Selection selection;
  std::vector<std::size_t> served;
  for (std::size_t i = 0; i < candidates.rows.size(); ++i) {
    const KernelRow& row = candidates.rows[i];
    Verdict verdict{row.key, VerdictKind::unavailable, unavailable_reason(row, type, facts),
                    row.origin};
    if (verdict.reason.empty()) {
      if (const Refusal refusal = refusal_of(row, call)) {
        verdict.kind = VerdictKind::refused;
        verdict.reason = *refusal;
      } else {
        verdict.kind = VerdictKind::lower;
        served.push_back(i);
      }
    }
    selection.verdicts.push_back(std::move(verdict));
  }
  const std::vector<std::size_t> left = narrow(candidates, served, selection.verdicts);
  if (left.size() == 1) {
    Verdict& winner = selection.verdicts[left.front()];
    winner.kind = VerdictKind::chosen;
    selection.chosen = winner.key;
    return selection;
  }
  for (std::size_t i : left)
    selection.verdicts[i].reason = "serves this call, and nothing is preferred";
  const std::string who = absl::StrFormat("%s: %s", candidates.op, candidates.interface_type);
  if (left.empty()) {
    selection.error = absl::UnimplementedError(
        absl::StrFormat("%s: %s: %s on a device with %s:%s", who, kNoImplementation,
                        to_string(call), to_string(facts),
                        candidates.rows.empty() ? "\n  (there are no implementations)"
                                                : verdict_lines(selection.verdicts)));
    return selection;
  }
  std::vector<Verdict> clash;
  for (std::size_t i : left) clash.push_back(selection.verdicts[i]);
  selection.error = absl::UnimplementedError(
      absl::StrFormat("%s: %s: %s: one of these must declare preferred_over, or the user settle it "
                      "with only, exclude or "
                      "prefer (KILN_SELECT):%s",
                      who, kAmbiguous, to_string(call), verdict_lines(clash)));
  return selection;
}

}  // namespace kiln::internal

namespace kiln::inline v1 {
std::string_view to_string(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::chosen:
      return "chosen";
    case VerdictKind::lower:
      return "lower";
    case VerdictKind::refused:
      return "refused";
    case VerdictKind::unavailable:
      return "unavailable";
  }
  return "invalid";
}
}  // namespace kiln::inline v1
