#include "cli/warm_jobs.h"

#include "cli/progress.h"
#include "runtime/call_json.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

namespace kiln::cli {

absl::StatusOr<std::vector<const Place*>> WarmJobs::places_for(const NamedCall& call,
                                                               const DeviceArguments& arguments) {
  const bool is_named =
      !arguments.boards.empty() || !arguments.archs.empty() || !arguments.device.empty();
  const std::string key =
      is_named || !call.call.device ? std::string() : to_string(*call.call.device);
  auto at = places_.find(key);
  if (at == places_.end()) {
    absl::StatusOr<std::vector<Place>> places =
        places_of(runtime_, arguments, is_named ? std::nullopt : call.call.device);
    if (!places.ok()) return is_named ? places.status() : annotate(places.status(), call.name);
    at = places_.emplace(key, *std::move(places)).first;
  }
  std::vector<const Place*> out;
  for (const Place& place : at->second) out.push_back(&place);
  return out;
}

std::vector<std::string> WarmJobs::place_names() const {
  std::vector<std::string> names;
  for (const auto& [key, places] : places_) {
    for (const Place& place : places) names.push_back(place.name);
  }
  return names;
}

absl::StatusOr<Op*> WarmJobs::op_for(const ParsedCall& call) {
  std::string key = call.op;
  for (const NamedValue& param : call.params)
    key += "\n" + param.name + "=" + internal::dump(internal::json_of(param.value));
  auto at = ops_.find(key);
  if (at == ops_.end()) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<Op> op, runtime_.create_op(call.op, call.params));
    at = ops_.emplace(key, std::move(op)).first;
  }
  return at->second.get();
}

absl::Status WarmJobs::plan_one(const NamedCall& call, const Place& place) {
  KILN_ASSIGN_OR_RETURN(Op* const op, op_for(call.call));
  WarmJob job;
  job.call = &call;
  job.place = &place;
  job.op = op;
  job.args = internal::on_device(call.call, op->signature(), place.device).args;
  KILN_ASSIGN_OR_RETURN(const std::vector<tools::PlannedKernel> kernels,
                        tools::explain_call(*op, job.args, place.device.type, place.facts,
                                            /*look_up=*/false));
  for (const tools::PlannedKernel& kernel : kernels) KILN_RETURN_IF_ERROR(kernel.selection.error);
  for (const tools::PlannedKernel& kernel : kernels) {
    const std::string identity = kernel.identity.hash();
    if (!seen_.emplace(*kernel.selection.chosen, identity, to_string(place.facts)).second) continue;
    if (job.wanted.empty())
      job.label = absl::StrFormat("%s for %s, %s", *kernel.selection.chosen, place.name, call.name);
    job.wanted.push_back(*kernel.selection.chosen + " " + identity);
  }
  if (!job.wanted.empty()) jobs_.push_back(std::move(job));
  return absl::OkStatus();
}

absl::Status WarmJobs::plan(const std::vector<NamedCall>& calls, const DeviceArguments& arguments,
                            const Interrupt& interrupt) {
  for (const NamedCall& call : calls) {
    KILN_ASSIGN_OR_RETURN(const std::vector<const Place*> places, places_for(call, arguments));
    for (const Place* place : places) {
      if (interrupt.requested()) return absl::OkStatus();
      if (absl::Status status = plan_one(call, *place); !status.ok())
        failures_.push_back({&call, place, std::move(status)});
    }
  }
  return absl::OkStatus();
}

absl::Status WarmJobs::do_job(WarmJob& job, WarmMode mode) {
  const auto add = [&job](const std::string& key, const std::string& identity) -> WarmKernel* {
    const bool is_wanted =
        std::find(job.wanted.begin(), job.wanted.end(), key + " " + identity) != job.wanted.end();
    if (!is_wanted) return nullptr;
    job.kernels.push_back({key, identity, {}});
    return &job.kernels.back();
  };
  const DeviceType type = job.place->device.type;
  if (mode != WarmMode::build) {
    KILN_ASSIGN_OR_RETURN(
        const std::vector<tools::PlannedKernel> planned,
        mode == WarmMode::look
            ? tools::explain_call(*job.op, job.args, type, job.place->facts, /*look_up=*/true)
            : tools::look_up_call(*job.op, job.args, type, job.place->facts));
    for (const tools::PlannedKernel& one : planned) {
      WarmKernel* kernel = add(*one.selection.chosen, one.identity.hash());
      if (kernel == nullptr) continue;
      for (const tools::PlannedProgram& program : one.programs)
        kernel->programs.push_back(
            {program.key, program.tier, program.program.source, program.target});
    }
    return absl::OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<tools::WarmedKernel> warmed,
                        tools::warm_call(*job.op, job.args, type, job.place->facts));
  for (const tools::WarmedKernel& one : warmed) {
    WarmKernel* kernel = add(one.key, one.identity);
    if (kernel == nullptr) continue;
    for (const tools::WarmedProgram& program : one.programs)
      kernel->programs.push_back({program.key, program.found_in, "", ""});
  }
  return absl::OkStatus();
}

namespace {

// Where the slowest of a job's programs came from: nullopt: from nowhere.
std::optional<cache::TierKind> slowest_tier(const WarmJob& job) {
  cache::TierKind slowest = cache::TierKind::memory;
  for (const WarmKernel& kernel : job.kernels) {
    for (const WarmProgram& program : kernel.programs) {
      if (!program.tier) return std::nullopt;
      slowest = std::max(slowest, *program.tier);
    }
  }
  return slowest;
}

std::string outcome(const WarmJob& job) {
  if (!job.status.ok()) return "failed";
  const std::optional<cache::TierKind> tier = slowest_tier(job);
  return tier ? "in " + std::string(cache::to_string(*tier)) : "built";
}

}  // namespace

void WarmJobs::run(int threads, WarmMode mode, const Interrupt& interrupt) {
  std::optional<Progress> progress;
  if (mode == WarmMode::build) progress.emplace(jobs_.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs_.size() && !interrupt.requested(); i = next++) {
      WarmJob& job = jobs_[i];
      if (progress) progress->begin(job.label);
      job.status = do_job(job, mode);
      job.is_done = true;
      if (progress) progress->end(job.label, outcome(job), job.status.ok());
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(static_cast<std::size_t>(threads), jobs_.size()); ++i)
    others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  for (const WarmJob& job : jobs_) {
    if (job.is_done && !job.status.ok()) failures_.push_back({job.call, job.place, job.status});
  }
}

namespace {

// Where each program came from, at its slowest: of two jobs at once one may find in memory what the
// other has just read or compiled.
using Origins = std::map<cache::CompileKey, std::optional<cache::TierKind>>;
Origins origins(const std::deque<WarmJob>& jobs) {
  Origins out;
  for (const WarmJob& job : jobs) {
    for (const WarmKernel& kernel : job.kernels) {
      for (const WarmProgram& program : kernel.programs) {
        const auto [row, added] = out.emplace(program.key, program.tier);
        if (!added && row->second && (!program.tier || *program.tier > *row->second))
          row->second = program.tier;
      }
    }
  }
  return out;
}

// Adds one identity to `summary`; `keys` are of the programs before it.
void count(const WarmKernel& kernel, const Origins& came_from, bool look_only,
           std::set<cache::CompileKey>& keys, WarmSummary& summary) {
  bool absent = false;
  cache::TierKind slowest = cache::TierKind::memory;
  for (const WarmProgram& program : kernel.programs) {
    const std::optional<cache::TierKind> tier = came_from.at(program.key);
    const bool is_new = keys.insert(program.key).second;
    summary.programs += is_new ? 1 : 0;
    summary.compiled += is_new && !tier && !look_only ? 1 : 0;
    // What an earlier identity of this run compiled, or waited for together with this one, is there
    // by now.
    if (!is_new && !look_only) continue;
    if (tier) slowest = std::max(slowest, *tier);
    absent = absent || !tier;
  }
  ++summary.identities;
  ++(!absent ? summary.hits[slowest] : look_only ? summary.missing : summary.built);
}

}  // namespace

WarmSummary summarise(const std::deque<WarmJob>& jobs, WarmMode mode) {
  const bool look_only = mode != WarmMode::build;
  const Origins came_from = origins(jobs);
  WarmSummary summary;
  std::set<cache::CompileKey> keys;
  for (const WarmJob& job : jobs) {
    if (!job.is_done) summary.not_done += job.wanted.size();
    for (const WarmKernel& kernel : job.kernels) count(kernel, came_from, look_only, keys, summary);
  }
  return summary;
}

Json hits_json(const WarmSummary& summary) {
  Json json;
  for (const cache::TierKind tier : {cache::TierKind::memory, cache::TierKind::disk,
                                     cache::TierKind::layer, cache::TierKind::remote}) {
    const auto at = summary.hits.find(tier);
    json[std::string(cache::to_string(tier))] = at == summary.hits.end() ? 0 : at->second;
  }
  return json;
}

}  // namespace kiln::cli
