#include "jit/process.h"

#include <kiln/status.h>

#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace kiln::jit {
namespace {

// How often the end of a child is asked for once its output is closed; and how soon a deadline is
// seen.
constexpr absl::Duration kPoll = absl::Milliseconds(1);
constexpr absl::Duration kMaxSleep = absl::Milliseconds(100);

std::string errno_text(int error) {
  return absl::StrFormat("%s (errno %d)", strerrordesc_np(error), error);
}

class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }

  void prepare(const ProcessOptions& options, int output) {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    if (!options.folder.empty())
      posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

bool is_cancelled(const ProcessOptions& options) {
  return options.cancelled && options.cancelled();
}

class Child {
 public:
  Child(pid_t pid, int output) : pid_(pid), output_(output) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    close(output_);
    if (!reaped_) end_group();
  }

  // Reads until every writer has closed the pipe; false when it should end before.
  bool read_output(const ProcessOptions& options, std::string& output) {
    std::array<char, 4096> buffer{};
    while (true) {
      const absl::Duration left = options.deadline - absl::Now();
      if (left <= absl::ZeroDuration() || is_cancelled(options)) return false;
      pollfd event = {.fd = output_, .events = POLLIN, .revents = 0};
      const auto sleep =
          absl::ToInt64Milliseconds(absl::Ceil(std::min(left, kMaxSleep), absl::Milliseconds(1)));
      if (poll(&event, 1, static_cast<int>(sleep)) <= 0) continue;
      const ssize_t count = read(output_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return true;
      const std::size_t room =
          options.max_output_bytes - std::min(options.max_output_bytes, output.size());
      output.append(buffer.data(), std::min(room, static_cast<std::size_t>(count)));
    }
  }

  // The wait status, once it has ended; nullopt when it should end before.
  absl::StatusOr<std::optional<int>> wait(const ProcessOptions& options) {
    while (true) {
      int status = 0;
      const pid_t pid = waitpid(pid_, &status, WNOHANG);
      const int error = errno;
      if (pid == pid_) {
        reaped_ = true;
        return std::optional<int>(status);
      }
      if (pid < 0 && error != EINTR) {
        reaped_ = true;  // nothing is left to wait for
        return absl::FailedPreconditionError(
            "child process: its exit status must reach Kiln: this process ignores SIGCHLD or reaps "
            "children it did "
            "not start: " +
            errno_text(error));
      }
      if (absl::Now() >= options.deadline || is_cancelled(options)) return std::optional<int>();
      absl::SleepFor(kPoll);
    }
  }

 private:
  void end_group() {
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  pid_t pid_;
  int output_;
  bool reaped_ = false;
};

}  // namespace

absl::StatusOr<ProcessResult> run_process(const ProcessOptions& options) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    const int error = errno;
    return absl::ResourceExhaustedError("child process: no pipe: " + errno_text(error));
  }
  pid_t pid = 0;
  int error = 0;
  {
    SpawnSetup setup;
    setup.prepare(options, pipe_ends[1]);
    error = posix_spawn(&pid, options.program.c_str(), &setup.actions, &setup.attributes,
                        pointers(options.arguments).data(), pointers(options.environment).data());
  }
  close(pipe_ends[1]);
  if (error != 0) {
    close(pipe_ends[0]);
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: must be a program that can be run: %s", options.program, errno_text(error)));
  }
  Child child(pid, pipe_ends[0]);
  ProcessResult result;
  const bool closed = child.read_output(options, result.output);
  std::optional<int> status;
  if (closed) {
    KILN_ASSIGN_OR_RETURN(status, child.wait(options));
  }
  if (!status && is_cancelled(options)) {
    return absl::CancelledError(absl::StrFormat("%s: was cancelled and killed; its output: %s",
                                                options.program, result.output));
  }
  if (!status) {
    return absl::DeadlineExceededError(
        absl::StrFormat("%s: must end by its deadline: it did not and was killed; its output: %s",
                        options.program, result.output));
  }
  if (WIFSIGNALED(*status)) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s: ended by signal %d (%s); its output: %s", options.program,
                        WTERMSIG(*status), sigdescr_np(WTERMSIG(*status)), result.output));
  }
  result.exit_status = WEXITSTATUS(*status);
  return result;
}

}  // namespace kiln::jit
