#include "cli/tune.h"

#include <kiln/op.h>
#include <kiln/runtime.h>

#include "base/mutex.h"
#include "cli/call_arguments.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/tune_child.h"
#include "cli/validators.h"
#include "runtime/call_json.h"

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
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::cli {
namespace {

struct TuneArguments {
  std::vector<std::string> calls;
  std::string file, devices = "cuda:0", shard, policy = "automatic", report;
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

absl::StatusOr<std::vector<NamedCall>> read_calls(Runtime& runtime, const TuneArguments& a) {
  if (a.file.empty() == a.calls.empty()) {
    return absl::InvalidArgumentError(
        a.file.empty() ? "calls must be given: want --calls FILE or CALLs, got neither"
                       : "calls must be given once: want --calls FILE or CALLs, got both");
  }
  KILN_ASSIGN_OR_RETURN(std::vector<NamedCall> calls, a.file.empty()
                                                          ? parse_call_words(runtime, a.calls)
                                                          : read_call_file(runtime, a.file));
  KILN_ASSIGN_OR_RETURN(const auto shard, shard_of(a.shard));
  std::vector<NamedCall> mine;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (static_cast<std::int64_t>(i) % shard.second == shard.first)
      mine.push_back(std::move(calls[i]));
  }
  return mine;
}

// How far the work is: a line that is written over on a terminal, else a line for each call.
class Display {
 public:
  explicit Display(std::size_t total) : total_(total), is_terminal_(isatty(STDERR_FILENO) != 0) {}
  void step(const Task& task, const Json& p) {
    if (!is_terminal_) return;
    MutexLock lock(mutex_);
    std::fprintf(stderr, "\r\033[K[%zu/%zu] %s on %s: %s %s %s", done_, total_,
                 task.call->name.c_str(), to_string(task.device).c_str(),
                 p.value("implementation", "").c_str(), p.value("phase", "").c_str(),
                 p.value("candidate", "").c_str());
  }
  void done(const Task& task) {
    MutexLock lock(mutex_);
    ++done_;
    std::fprintf(stderr, "%s[%zu/%zu] %s on %s: %s\n", is_terminal_ ? "\r\033[K" : "", done_,
                 total_, task.call->name.c_str(), to_string(task.device).c_str(),
                 task.outcome.status.ok() ? "ok" : "failed");
  }

 private:
  Mutex mutex_;
  const std::size_t total_;
  std::size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  const bool is_terminal_;
};

// Every device takes the next call of its board as soon as it is free.
void run_tasks(Runtime& runtime, std::vector<Board>& boards, const TuneArguments& arguments,
               const Interrupt& interrupt, Display& progress) {
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
      task->outcome = sweep_in_children(std::move(request),
                                        [&](const Json& json) { progress.step(*task, json); });
      progress.done(*task);
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
  json["error"] = task.outcome.status.ok() ? Json() : Json(message_of(task.outcome.status));
  json["sweeps"] = task.outcome.reports;
  return json;
}

std::string config_text(const Json& config) {
  std::string text;
  for (const auto& [name, value] : config.items())
    text += (text.empty() ? "" : " ") + name + "=" + value.dump();
  return text;
}

void print_sweep(const Json& sweep) {
  const std::string what =
      sweep["implementation"].get<std::string>() + " " + sweep["identity_text"].get<std::string>();
  if (!sweep["error"].is_null()) {
    std::printf("  %s: not tuned: %s\n", what.c_str(),
                indented(sweep["error"].get<std::string>(), 4).c_str());
    return;
  }
  const double before = sweep["default_seconds"].get<double>();
  const double after = sweep["winner_seconds"].get<double>();
  const bool stays = sweep["winner"] == sweep["default"];
  std::printf("  %s: %s\n", what.c_str(),
              stays ? "the default stays" : config_text(sweep["winner"]).c_str());
  std::printf(
      "    default %s at %s%s; %s, %zu candidates%s\n", config_text(sweep["default"]).c_str(),
      seconds_text(before).c_str(), stays ? "" : (", now " + seconds_text(after)).c_str(),
      sweep["from_record"].get<bool>()
          ? "from a record"
          : ("swept in " + seconds_text(sweep["sweep_seconds"].get<double>())).c_str(),
      sweep["candidates"].size(), sweep["complete"].get<bool>() ? "" : ", cut short by the budget");
  for (const Json& candidate : sweep["candidates"]) {
    const std::string state = candidate["state"].get<std::string>();
    if (state != "wrong" && state != "failed" && state != "excluded") continue;
    std::printf("    %s: %s: %s\n", state.c_str(), config_text(candidate["config"]).c_str(),
                indented(candidate.value("reason", ""), 6).c_str());
  }
}

absl::Status write_page(const std::string& path, const std::string& page) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written =
      file != nullptr && std::fwrite(page.data(), 1, page.size(), file) == page.size();
  if (file != nullptr && std::fclose(file) == 0 && written) return absl::OkStatus();
  return absl::FailedPreconditionError("--report: must be able to write " + path);
}

// A sweep that found trouble of its own is a failure of the command, too.
bool went_well(const Json& result) {
  if (!result["error"].is_null()) return false;
  return std::all_of(result["sweeps"].begin(), result["sweeps"].end(),
                     [](const Json& sweep) { return sweep["error"].is_null(); });
}

absl::StatusOr<Exit> tune(const Session& session, TuneArguments arguments) {
  const absl::Time start = absl::Now();
  for (const SearchPolicy policy :
       {SearchPolicy::automatic, SearchPolicy::exhaustive, SearchPolicy::halving}) {
    if (arguments.policy == to_string(policy)) arguments.options.policy = policy;
  }
  Runtime& runtime = Runtime::instance();
  runtime.load_backends();
  KILN_ASSIGN_OR_RETURN(const std::vector<NamedCall> calls, read_calls(runtime, arguments));
  KILN_ASSIGN_OR_RETURN(const std::vector<Device> devices, devices_of(runtime, arguments.devices));
  KILN_ASSIGN_OR_RETURN(std::vector<Board> boards, boards_of(runtime, devices));
  std::vector<Task> tasks(calls.size() * boards.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].call = &calls[i / boards.size()];
    tasks[i].board = i % boards.size();
    boards[tasks[i].board].waiting.push_back(&tasks[i]);
  }
  const Interrupt interrupt;
  Display progress(tasks.size());
  run_tasks(runtime, boards, arguments, interrupt, progress);
  Json results = Json::array();
  for (const Task& task : tasks) {
    if (task.outcome.children > 0) results.push_back(result_of(task, runtime));
  }
  const std::size_t failed = static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const Json& r) { return !went_well(r); }));
  if (!arguments.report.empty())
    KILN_RETURN_IF_ERROR(write_page(arguments.report, tune_report_page(results)));
  if (session.json) {
    Json json;
    json["calls"] = calls.size();
    json["failed"] = failed;
    json["seconds"] = absl::ToDoubleSeconds(absl::Now() - start);
    json["results"] = std::move(results);
    print_json(json);
  } else {
    for (const Json& result : results) {
      std::printf("%s on %s\n", result["where"].get<std::string>().c_str(),
                  result["device"].get<std::string>().c_str());
      if (!result["error"].is_null())
        std::printf("  failed: %s\n", indented(result["error"].get<std::string>(), 4).c_str());
      else if (result["sweeps"].empty())
        std::printf("  nothing to tune: its kernels offer no configurations\n");
      for (const Json& sweep : result["sweeps"]) print_sweep(sweep);
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
  command->add_option("CALL", arguments->calls, "what to tune");
  command->add_option("--calls", arguments->file, "a file with one CALL a line; - is stdin")
      ->type_name("FILE");
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
      ->check(CLI::IsMember({"automatic", "exhaustive", "halving"}));
  command->add_option("--sample", options.sample_size, "candidates that halving begins with")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "the same seed tries the same in the same order");
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
           {{"kiln tune --calls calls.jsonl", "on all GPUs of this machine"},
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
