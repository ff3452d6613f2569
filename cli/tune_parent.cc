// The parent's side of a sweep: starts the child, reads it, and judges how it ended.
#include "cli/tune_child.h"
#include "runtime/tune_json.h"

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace kiln::cli {
namespace {

// A candidate that keeps taking its process with it is not sought for ever.
constexpr int kMaxChildren = 100;
constexpr absl::Duration kLongestPoll = absl::Hours(1);  // whose milliseconds are an int

// The child's ends are made its own by posix_spawn; ours are closed in every child.
struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  ~Pipe() {
    close(read);
    close(write);
  }
};

class Child {
 public:
  ~Child() {
    if (pid_ > 0) end();
  }

  absl::Status start(const std::string& request) {
    if (!in_.open() || !out_.open()) {
      return absl::ResourceExhaustedError(absl::StrFormat("tune: must be able to make a pipe: %s",
                                                          std::string(std::strerror(errno))));
    }
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in_.read, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out_.write, STDOUT_FILENO);
    char program[] = "/proc/self/exe", name[] = "tune-child";
    char* const arguments[] = {program, name, nullptr};
    const int failed = ::posix_spawn(&pid_, program, &actions, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    Pipe::close(in_.read);
    Pipe::close(out_.write);
    if (failed != 0) {
      pid_ = -1;
      return absl::FailedPreconditionError(absl::StrFormat(
          "tune: must be able to start a child: %s", std::string(std::strerror(failed))));
    }
    // SIGPIPE is ignored by `sweep_in_children`: a child that died at once is seen by its output.
    for (std::size_t at = 0; at < request.size();) {
      const ssize_t count = ::write(in_.write, request.data() + at, request.size() - at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      at += static_cast<std::size_t>(count);
    }
    Pipe::close(in_.write);
    return absl::OkStatus();
  }

  // The next line; nullopt at the end of the output. DeadlineExceeded: none came within `limit`.
  absl::StatusOr<std::optional<std::string>> read_line(absl::Duration limit) {
    const absl::Time deadline = absl::Now() + limit;
    while (true) {
      if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return std::optional(std::move(line));
      }
      const absl::Duration left = std::min(deadline - absl::Now(), kLongestPoll);
      if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("no sign of life");
      pollfd poll{out_.read, POLLIN, 0};
      if (::poll(&poll, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
      char buffer[4096];
      const ssize_t count = ::read(out_.read, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return std::optional<std::string>();
      text_.append(buffer, static_cast<std::size_t>(count));
    }
  }

  // Kills it if it still runs, and says how it ended.
  std::string end() {
    ::kill(pid_, SIGKILL);
    return wait();
  }
  std::string wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) {
      return absl::StrFormat("ended its process with signal %d (%s)", WTERMSIG(status),
                             std::string(::strsignal(WTERMSIG(status))));
    }
    return absl::StrFormat("ended its process with status %d", WEXITSTATUS(status));
  }

 private:
  pid_t pid_ = -1;
  Pipe in_, out_;
  std::string text_;
};

std::string text_of(const SweepRequest& request) {
  Json json;
  json["call"] = request.call;
  json["device"] = to_string(request.device);
  json["parent"] = static_cast<std::int64_t>(::getpid());
  json["options"] = internal::json_of(request.options);
  return json.dump();
}

// What a child said last, and how it went.
struct Heard {
  Json progress;  // null: none
  Json last;      // null: it ended without its last line
  std::string end;
};

// Phases in which a candidate runs: only there it can fault or hang.
bool runs_candidate(const Json& progress) {
  if (!progress.is_object()) return false;
  const std::string phase = progress.value("phase", "");
  return phase == "checking" || phase == "timing" || phase == "deciding";
}

Heard listen(Child& child, const SweepRequest& request,
             const std::function<void(const Json&)>& progress) {
  Heard heard;
  // What compiles has limits of its own.
  const double compiling = request.options.compile_seconds + request.options.budget_seconds + 120;
  while (true) {
    const double limit = runs_candidate(heard.progress) ? request.hang_seconds : compiling;
    const auto line = child.read_line(absl::Seconds(limit));
    if (!line.ok()) {
      child.end();
      heard.end = absl::StrFormat("ran for %g seconds without an end", limit);
      return heard;
    }
    if (!*line) {
      heard.end = child.wait();
      return heard;
    }
    const Json json = Json::parse(**line, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded() || !json.is_object()) continue;  // a library's own words
    if (json.contains("progress")) {
      heard.progress = json["progress"];
      progress(heard.progress);
    } else if (json.contains("reports") || json.contains("error")) {
      heard.last = json;
    }
  }
}

// A device error that stays is a report's own status in the child: it, too, costs the candidate.
std::string sticky_error(const Json& reports) {
  for (const Json& report : reports) {
    if (!report["error"].is_null() &&
        report["error"].get<std::string>().find("the device's error stays") != std::string::npos)
      return report["error"].get<std::string>();
  }
  return "";
}

}  // namespace

SweepOutcome sweep_in_children(SweepRequest request,
                               const std::function<void(const Json& progress)>& progress) {
  ::signal(SIGPIPE, SIG_IGN);
  SweepOutcome outcome;
  while (outcome.children < kMaxChildren) {
    ++outcome.children;
    Child child;
    outcome.status = child.start(text_of(request));
    if (!outcome.status.ok()) return outcome;
    Heard heard = listen(child, request, progress);
    std::string reason = heard.end;
    if (heard.last.is_object()) {
      if (heard.last.contains("error")) {
        outcome.status =
            absl::Status(static_cast<absl::StatusCode>(heard.last["error"]["code"].get<int>()),
                         heard.last["error"]["message"].get<std::string>());
        return outcome;
      }
      outcome.reports = heard.last["reports"];
      reason = sticky_error(outcome.reports);
      if (reason.empty()) return outcome;
    }
    if (!runs_candidate(heard.progress)) {
      outcome.status = absl::InternalError("tune: the sweep " + heard.end);
      return outcome;
    }
    const auto word = [&](const char* name) { return heard.progress.value(name, ""); };
    const auto& known = request.options.exclude;
    for (const TuneExclusion& one : known) {
      if (one.implementation == word("implementation") && one.config == word("candidate")) {
        outcome.status = absl::InternalError("tune: the sweep " + reason + " again");
        return outcome;
      }
    }
    request.options.exclude.push_back({word("implementation"), word("candidate"), reason});
  }
  outcome.status = absl::AbortedError(
      absl::StrFormat("tune: the sweep must end within %d processes, got no end", kMaxChildren));
  return outcome;
}

}  // namespace kiln::cli
