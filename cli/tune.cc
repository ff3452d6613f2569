#include "cli/tune.h"

#include <kiln/op.h>
#include <kiln/runtime.h>

#include "base/mutex.h"
#include "cli/call_arguments.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/tune_child.h"
#include "cli/validators.h"
#include "runtime/call_json.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::cli {
namespace {

struct TuneArguments {
  CallSource calls;
  std::string devices = "cuda:0", shard, policy = "automatic", report;
  double hang_seconds = 30;
  TuneOptions options;
};

// One call on one board, and the devices that can sweep it.
struct Task {
  const NamedCall* call = nullptr;
  std::size_t board = 0;  // index of its facts
  Device device;          // that swept it
  SweepOutcome outcome;
};

struct Board {
  DeviceFacts facts;
  std::vector<Device> devices;
  std::vector<Task*> waiting;
};

absl::StatusOr<std::vector<Device>> devices_of(Runtime& runtime, const std::string& text) {
  std::vector<Device> devices;
  if (text == "all") {
    KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime.device_support(DeviceType::cuda()));
    KILN_ASSIGN_OR_RETURN(const int count, support->device_count());
    for (int i = 0; i < count; ++i)
      devices.push_back({DeviceType::cuda(), static_cast<std::uint8_t>(i)});
    if (devices.empty()) return absl::FailedPreconditionError("--devices all: there is none");
    return devices;
  }
  for (const auto& part : absl::StrSplit(text, ',')) {
    KILN_ASSIGN_OR_RETURN(const Device device, parse_device({part.data(), part.size()}));
    // One that is named twice would be disturbed by itself.
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  }
  return devices;
}

// Boards by their facts: devices that are alike share the work.
absl::StatusOr<std::vector<Board>> boards_of(Runtime& runtime, const std::vector<Device>& devices) {
  std::vector<Board> boards;
  for (const Device& device : devices) {
    KILN_ASSIGN_OR_RETURN(DeviceSupport * support, runtime.device_support(device.type));
    KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, support->facts(device.index));
    auto at = std::find_if(boards.begin(), boards.end(), [&](const Board& board) {
      return board.facts == facts && board.devices[0].type == device.type;
    });
    if (at == boards.end()) at = boards.insert(boards.end(), Board{facts, {}, {}});
    at->devices.push_back(device);
  }
  return boards;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "I/N"; "slurm": of the array task that this is; "k8s/N": of the indexed job's pod that this is.
absl::StatusOr<std::pair<std::int64_t, std::int64_t>> shard_of(const std::string& text) {
  if (text.empty()) return std::pair<std::int64_t, std::int64_t>(0, 1);
  std::string index, count;
  std::int64_t first = 0;
  if (text == "slurm") {
    index = variable("SLURM_ARRAY_TASK_ID");
    count = variable("SLURM_ARRAY_TASK_COUNT");
    (void)absl::SimpleAtoi(variable("SLURM_ARRAY_TASK_MIN"), &first);
  } else {
    const std::vector<std::string> parts = absl::StrSplit(text, '/');
    if (parts.size() == 2) {
      index = parts[0] == "k8s" ? variable("JOB_COMPLETION_INDEX") : parts[0];
      count = parts[1];
    }
  }
  std::int64_t i = 0, n = 0;
  if (!absl::SimpleAtoi(index, &i) || !absl::SimpleAtoi(count, &n) || (i -= first) < 0 || i >= n) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--shard must be I/N with 0 <= I < N, slurm (SLURM_ARRAY_TASK_ID of an array with step 1), "
        "or k8s/N (JOB_COMPLETION_INDEX): got '%s' with index '%s' of '%s'",
        text, index, count));
  }
  return std::pair(i, n);
}

// Those of this shard.
absl::StatusOr<std::vector<NamedCall>> my_calls(Runtime& runtime, const TuneArguments& a) {
  KILN_ASSIGN_OR_RETURN(std::vector<NamedCall> calls, read_calls(runtime, a.calls));
  KILN_ASSIGN_OR_RETURN(const auto shard, shard_of(a.shard));
  std::vector<NamedCall> mine;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (static_cast<std::int64_t>(i) % shard.second == shard.first)
      mine.push_back(std::move(calls[i]));
  }
  return mine;
}

// Every device takes the next call of its board as soon as it is free.
void run_tasks(Runtime& runtime, std::vector<Board>& boards, const TuneArguments& arguments,
               const Interrupt& interrupt) {
  std::size_t total = 0;
  for (const Board& board : boards) total += board.waiting.size();
  Progress progress(total);
  Mutex mutex;
  const auto work = [&](Board& board, const Device& device) {
    while (true) {
      Task* task = nullptr;
      {
        MutexLock lock(mutex);
        if (board.waiting.empty() || interrupt.requested()) return;
        task = board.waiting.front();
        board.waiting.erase(board.waiting.begin());
      }
      task->device = device;
      const absl::StatusOr<const Signature*> signature =
          find_signature(runtime, task->call->call.op);
      SweepRequest request{internal::call_to_json(task->call->call, **signature), device,
                           arguments.options, arguments.hang_seconds};
      const std::string label = task->call->name + " on " + to_string(device);
      progress.begin(label);
      task->outcome = sweep_in_children(std::move(request), [&](const Json& json) {
        progress.step(label, json.value("implementation", "") + " " + json.value("phase", "") +
                                 " " + json.value("candidate", ""));
      });
      const bool ok = task->outcome.status.ok();
      progress.end(label, ok ? "ok" : "failed", ok);
    }
  };
  std::vector<std::thread> threads;
  for (Board& board : boards) {
    for (const Device& device : board.devices)
      threads.emplace_back(work, std::ref(board), std::cref(device));
  }
  for (std::thread& thread : threads) thread.join();
}

Json result_of(const Task& task, Runtime& runtime) {
  Json json;
  json["where"] = task.call->name;
  const absl::StatusOr<const Signature*> signature = find_signature(runtime, task.call->call.op);
  json["call"] = internal::json_of(task.call->call, **signature);
  json["device"] = to_string(task.device);
  json["children"] = task.outcome.children;
  json["error"] = task.outcome.status.ok() ? Json() : Json(reason_of(task.outcome.status));
  json["sweeps"] = task.outcome.reports;
  return json;
}

void print_sweep(const Json& sweep) {
  const std::string what =
      sweep["implementation"].get<std::string>() + " " + sweep["identity_text"].get<std::string>();
  if (!sweep["error"].is_null()) {
    print("  %s: not tuned: %s\n", what, indented(sweep["error"].get<std::string>(), 4));
    return;
  }
  const double before = sweep["default_seconds"].get<double>();
  const double after = sweep["winner_seconds"].get<double>();
  const bool stays = sweep["winner"] == sweep["default"];
  print("  %s: %s\n", what, stays ? "the default stays" : config_text(sweep["winner"]));
  print("    default %s at %s%s; %s, %zu candidates%s\n", config_text(sweep["default"]),
        seconds_text(before), stays ? "" : (", now " + seconds_text(after)),
        sweep["from_record"].get<bool>()
            ? "from a record"
            : ("swept in " + seconds_text(sweep["sweep_seconds"].get<double>())),
        sweep["candidates"].size(),
        sweep["complete"].get<bool>() ? "" : ", cut short by the budget");
  for (const Json& candidate : sweep["candidates"]) {
    const std::string state = candidate["state"].get<std::string>();
    if (state != "wrong" && state != "failed" && state != "excluded") continue;
    print("    %s: %s: %s\n", state, config_text(candidate["config"]),
          indented(candidate.value("reason", ""), 6));
  }
}

// A sweep that found trouble of its own is a failure of the command, too.
bool went_well(const Json& result) {
  if (!result["error"].is_null()) return false;
  return std::all_of(result["sweeps"].begin(), result["sweeps"].end(),
                     [](const Json& sweep) { return sweep["error"].is_null(); });
}

// What an interrupted run leaves, and how to go on.
std::string kept_text(Runtime& runtime, const TuneOptions& options) {
  if (!options.store) return "no records were kept (--no-store)";
  return absl::StrFormat(
      "their records are kept in %s/tuning; the same command%s goes on from there",
      tools::store(runtime).disk_dir(), options.force ? " without --force" : "");
}

absl::StatusOr<Exit> tune(const Session& session, TuneArguments arguments) {
  const absl::Time start = absl::Now();
  for (const SearchPolicy policy :
       {SearchPolicy::automatic, SearchPolicy::exhaustive, SearchPolicy::halving}) {
    if (arguments.policy == to_string(policy)) arguments.options.policy = policy;
  }
  Runtime& runtime = Runtime::instance();
  runtime.load_backends();
  KILN_ASSIGN_OR_RETURN(const std::vector<NamedCall> calls, my_calls(runtime, arguments));
  KILN_ASSIGN_OR_RETURN(const std::vector<Device> devices, devices_of(runtime, arguments.devices));
  KILN_ASSIGN_OR_RETURN(std::vector<Board> boards, boards_of(runtime, devices));
  std::vector<Task> tasks(calls.size() * boards.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].call = &calls[i / boards.size()];
    tasks[i].board = i % boards.size();
    boards[tasks[i].board].waiting.push_back(&tasks[i]);
  }
  // Better known now than after hours.
  if (!arguments.report.empty()) KILN_RETURN_IF_ERROR(check_output("--report", arguments.report));
  const Interrupt interrupt;
  run_tasks(runtime, boards, arguments, interrupt);
  Json results = Json::array();
  for (const Task& task : tasks) {
    if (task.outcome.children > 0) results.push_back(result_of(task, runtime));
  }
  const std::size_t not_done = tasks.size() - results.size();
  const std::size_t failed = static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const Json& r) { return !went_well(r); }));
  if (!arguments.report.empty())
    KILN_RETURN_IF_ERROR(write_output("--report", arguments.report, tune_report_page(results)));
  if (session.json) {
    Json json;
    json["calls"] = calls.size();
    json["failed"] = failed;
    json["interrupted"] = interrupt.requested();
    json["not_done"] = not_done;
    json["seconds"] = absl::ToDoubleSeconds(absl::Now() - start);
    json["results"] = std::move(results);
    print_json(json);
  } else {
    for (const Json& result : results) {
      print("%s on %s\n", result["where"].get<std::string>(), result["device"].get<std::string>());
      if (!result["error"].is_null())
        print("  failed: %s\n", indented(result["error"].get<std::string>(), 4));
      else if (result["sweeps"].empty())
        print("  nothing to tune: its kernels offer no configurations\n");
      for (const Json& sweep : result["sweeps"]) print_sweep(sweep);
    }
    if (interrupt.requested()) {
      print("interrupted: %zu of %zu calls were tuned, %zu were not begun; %s\n",
            tasks.size() - not_done - failed, tasks.size(), not_done,
            kept_text(runtime, arguments.options));
    }
  }
  return interrupt.exit_or(failed == 0 ? Exit::ok : Exit::cannot_do);
}

}  // namespace

void add_tune(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "tune", "find the fastest configurations on a device, in processes of their own");
  auto arguments = std::make_shared<TuneArguments>();
  TuneOptions& options = arguments->options;
  command->add_option("CALL", arguments->calls.words, "what to tune");
  add_call_file_options(*command, arguments->calls);
  command->add_option("--devices,--device", arguments->devices,
                      "as cuda:0,cuda:1, cpu, or all GPUs; those that are alike share the calls");
  command->add_option("--shard", arguments->shard,
                      "only these calls of a job array: I/N, slurm, or k8s/N");
  command->add_option("--budget", options.budget_seconds, "seconds for the sweep of one kernel")
      ->check(at_least(0))
      ->capture_default_str();
  command
      ->add_option("--policy", arguments->policy,
                   "exhaustive, halving (of a random sample), or automatic")
      ->check(one_of({"automatic", "exhaustive", "halving"}));
  command->add_option("--sample", options.sample_size, "candidates that halving begins with")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "the same seed tries the same in the same order")
      ->check(at_least(0));
  command->add_option("--rounds", options.rounds, "samples of a candidate at most")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option("--hang-limit", arguments->hang_seconds,
                   "seconds after which a candidate that runs is taken to hang")
      ->check(more_than(0))
      ->capture_default_str();
  command->add_flag("--force", options.force, "sweep also where a record is there");
  command->add_flag("!--no-store", options.store, "keep no records");
  command->add_option("--report", arguments->report, "write a page with pictures, as report.html");
  examples(*command,
           {{"kiln tune --calls calls.jsonl --devices all", "on all GPUs of this machine"},
            {"kiln tune --calls calls.jsonl --shard 3/8", "one of eight jobs of an array"},
            {"kiln tune export winners.json", "its records, for other machines"}});
  command->require_subcommand(0, 1);
  add_tune_records(*command, session);
  command->callback([&session, arguments, command] {
    if (!command->get_subcommands().empty()) return;
    session.command = [&session, arguments] { return tune(session, *arguments); };
  });
}

}  // namespace kiln::cli
