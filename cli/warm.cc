#include <kiln/runtime.h>

#include "cli/call_arguments.h"
#include "cli/device_arguments.h"
#include "cli/session.h"
#include "runtime/call_json.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <tuple>
#include <unistd.h>

namespace kiln::cli {
namespace {

struct WarmArguments {
  std::vector<std::string> calls;
  std::string file;
  DeviceArguments devices;
  int jobs = 0;
};

// One call on one board.
struct Task {
  const NamedCall* call = nullptr;
  const Place* place = nullptr;
  absl::StatusOr<std::vector<tools::WarmedKernel>> result = absl::UnknownError("not run");
};

absl::StatusOr<std::vector<tools::WarmedKernel>> warm_one(Runtime& runtime, const Task& task) {
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Op> op,
                        runtime.create_op(task.call->call.op, task.call->call.params));
  const ParsedCall call = internal::on_device(task.call->call, op->signature(), task.place->device);
  return tools::warm_call(*op, call.args, task.place->device.type, task.place->facts);
}

// Tells how far the work is: a line that is written over on a terminal, else a line for each task.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total), is_terminal_(isatty(STDERR_FILENO) != 0) {}
  void done(const Task& task) {
    absl::MutexLock lock(&mutex_);
    ++done_;
    const std::string text = absl::StrFormat("[%d/%d] %s on %s: %s", done_, total_, task.call->name,
                                             task.place->name, task.result.ok() ? "ok" : "failed");
    std::fprintf(stderr, is_terminal_ ? "\r\033[K%s" : "%s\n", text.c_str());
    if (is_terminal_ && done_ == total_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  absl::Mutex mutex_;
  const std::size_t total_;
  std::size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  const bool is_terminal_;
};

void run_tasks(Runtime& runtime, std::vector<Task>& tasks, int jobs, Progress& progress) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      tasks[i].result = warm_one(runtime, tasks[i]);
      progress.done(tasks[i]);
    }
  };
  std::vector<std::thread> threads;
  const std::size_t count = std::min(static_cast<std::size_t>(jobs), tasks.size());
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

// Counts of what was asked for. Each distinct (implementation, identity, device facts) is one
// identity and is counted once: as built when one of its programs was compiled, else by the slowest
// tier one came from; so identities = built + all hits.
struct Summary {
  std::size_t identities = 0, programs = 0, compiled = 0, built = 0, failed = 0;
  std::map<cache::TierKind, std::size_t> hits;
};

// Where each program came from, at its slowest: of two tasks at once one may find in memory what
// the other has just read or compiled. nullopt: compiled.
std::map<cache::CompileKey, std::optional<cache::TierKind>> origins(
    const std::vector<Task>& tasks) {
  std::map<cache::CompileKey, std::optional<cache::TierKind>> out;
  for (const Task& task : tasks) {
    if (!task.result.ok()) continue;
    for (const tools::WarmedKernel& kernel : *task.result) {
      for (const tools::WarmedProgram& program : kernel.programs) {
        const auto [row, added] = out.emplace(program.key, program.found_in);
        if (!added && row->second && (!program.found_in || *program.found_in > *row->second))
          row->second = program.found_in;
      }
    }
  }
  return out;
}

Summary summarise(const std::vector<Task>& tasks) {
  const auto came_from = origins(tasks);
  Summary summary;
  std::set<std::tuple<std::string, std::string, std::string>> identities;
  std::set<cache::CompileKey> keys;
  for (const Task& task : tasks) {
    if (!task.result.ok()) {
      ++summary.failed;
      continue;
    }
    for (const tools::WarmedKernel& kernel : *task.result) {
      if (!identities.emplace(kernel.key, kernel.identity, to_string(task.place->facts)).second)
        continue;
      bool built = false;
      cache::TierKind slowest = cache::TierKind::memory;
      for (const tools::WarmedProgram& program : kernel.programs) {
        // What an earlier identity of this run compiled, or waited for together with this one, is
        // there by now.
        if (!keys.insert(program.key).second) continue;
        ++summary.programs;
        const std::optional<cache::TierKind> tier = came_from.at(program.key);
        if (tier)
          slowest = std::max(slowest, *tier);
        else
          built = true;
        if (!tier) ++summary.compiled;
      }
      ++summary.identities;
      ++(built ? summary.built : summary.hits[slowest]);
    }
  }
  return summary;
}

Json failures_json(const std::vector<Task>& tasks, Runtime& runtime) {
  Json failures = Json::array();
  for (const Task& task : tasks) {
    if (task.result.ok()) continue;
    const absl::StatusOr<const Signature*> signature = find_signature(runtime, task.call->call.op);
    Json one;
    one["call"] =
        signature.ok() ? internal::call_to_json(task.call->call, **signature) : task.call->name;
    one["where"] = task.call->name;
    one["board"] = task.place->name;
    one["kind"] = internal::kind_name(task.result.status());
    one["reason"] = message_of(task.result.status());
    failures.push_back(std::move(one));
  }
  return failures;
}

void print_summary(const std::vector<Task>& tasks, const Summary& summary, double seconds) {
  for (const Task& task : tasks) {
    if (task.result.ok()) continue;
    std::printf("failed: %s on %s: %s\n", task.call->name.c_str(), task.place->name.c_str(),
                indented(message_of(task.result.status()), 2).c_str());
  }
  std::string hits;
  for (const auto& [tier, count] : summary.hits) {
    hits += absl::StrFormat(", %d from %s", count, cache::to_string(tier));
  }
  std::printf("%zu identities: %zu built%s; %zu failed; %s\n", summary.identities, summary.built,
              hits.c_str(), summary.failed, seconds_text(seconds).c_str());
  if (summary.built == 0 && summary.failed == 0)
    std::printf("nothing was built: all of it was there\n");
}

absl::StatusOr<std::vector<NamedCall>> read_calls(Runtime& runtime,
                                                  const WarmArguments& arguments) {
  if (arguments.file.empty() == arguments.calls.empty()) {
    return absl::InvalidArgumentError(
        arguments.file.empty() ? "calls must be given: want --calls FILE or CALLs, got neither"
                               : "calls must be given once: want --calls FILE or CALLs, got both");
  }
  if (arguments.file.empty()) return parse_call_words(runtime, arguments.calls);
  return read_call_file(runtime, arguments.file);
}

absl::StatusOr<Exit> warm(const Session& session, const WarmArguments& arguments) {
  const absl::Time start = absl::Now();
  const int jobs = arguments.jobs != 0
                       ? arguments.jobs
                       : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (jobs < 1)
    return absl::InvalidArgumentError(absl::StrFormat("--jobs must be positive: got %d", jobs));
  Runtime& runtime = Runtime::instance();
  KILN_ASSIGN_OR_RETURN(const std::vector<NamedCall> calls, read_calls(runtime, arguments));
  KILN_ASSIGN_OR_RETURN(const std::vector<Place> places,
                        places_of(runtime, arguments.devices, std::nullopt));
  std::vector<Task> tasks;
  for (const NamedCall& call : calls) {
    for (const Place& place : places) {
      tasks.emplace_back();
      tasks.back().call = &call;
      tasks.back().place = &place;
    }
  }
  Progress progress(tasks.size());
  run_tasks(runtime, tasks, jobs, progress);
  const Summary summary = summarise(tasks);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  if (session.json) {
    Json json;
    json["calls"] = calls.size();
    json["boards"] = Json::array();
    for (const Place& place : places) json["boards"].push_back(place.name);
    json["identities"] = summary.identities;
    json["programs"] = summary.programs;
    json["compiled"] = summary.compiled;
    json["built"] = summary.built;
    for (cache::TierKind tier : {cache::TierKind::memory, cache::TierKind::disk,
                                 cache::TierKind::layer, cache::TierKind::remote}) {
      const auto it = summary.hits.find(tier);
      json["hits"][std::string(cache::to_string(tier))] = it == summary.hits.end() ? 0 : it->second;
    }
    json["missing"] = 0;  // what is not there is built, or has failed
    json["failed"] = summary.failed;
    json["failures"] = failures_json(tasks, runtime);
    json["seconds"] = seconds;
    print_json(json);
  } else {
    print_summary(tasks, summary, seconds);
  }
  return summary.failed == 0 ? Exit::ok : Exit::cannot_do;
}

}  // namespace

void add_warm(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("warm", "build what calls need, without a GPU, into the cache");
  auto arguments = std::make_shared<WarmArguments>();
  command->add_option("--calls", arguments->file, "a file with one CALL a line; - is stdin");
  command->add_option("CALL", arguments->calls, "ops and their JSON");
  command->add_option("--jobs", arguments->jobs, "builds at once; as many as there are cores");
  add_device_options(*command, arguments->devices);
  command->callback([&session, arguments] {
    session.command = [&session, arguments] { return warm(session, *arguments); };
  });
}

}  // namespace kiln::cli
