#include "jit/worker_process.h"

#include <kiln/status.h>

#include "base/file_system.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace kiln::jit {
namespace {

// What a worker printed before its end, at most: a loader's or a sanitizer's message.
constexpr off_t kMaxOutputBytes = 4096;
// For a message that fits into an empty socket.
constexpr std::chrono::seconds kSetupTimeout{1};

// Descriptors of the child must be none of 0, 1, 2, which a host may have closed.
absl::StatusOr<Fd> above_standard(Fd fd) {
  if (fd.get() > 2) return fd;
  const int moved = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3);
  if (moved < 0) return errno_status(errno, "dup of a descriptor");
  return Fd(moved);
}

absl::StatusOr<Fd> make_output() {
  const int fd = ::memfd_create("kiln-compile-worker output", MFD_CLOEXEC);
  if (fd < 0) return errno_status(errno, "memfd_create");
  return above_standard(Fd(fd));
}

// posix_spawn's two objects, set up for a worker.
class SpawnPlan {
 public:
  SpawnPlan(int socket, int output) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, socket, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    // A process group of its own: Ctrl-C at a terminal is for the host, which may have work to
    // finish.
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::spawn(const std::string& program) {
  KILN_ASSIGN_OR_RETURN(auto ends, make_socket_pair());
  KILN_ASSIGN_OR_RETURN(Fd child_end, above_standard(std::move(ends.second)));
  KILN_ASSIGN_OR_RETURN(Fd output, make_output());
  SpawnPlan plan(child_end.get(), output.get());
  char* arguments[] = {const_cast<char*>(program.c_str()), nullptr};
  pid_t pid = 0;
  // Our environment as it is: it says where the loader finds NVRTC.
  const int error =
      ::posix_spawn(&pid, program.c_str(), &plan.actions, &plan.attributes, arguments, environ);
  if (error != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: must be a program that can be run: %s (errno %d)", program,
                        strerrordesc_np(error), error));
  }
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, std::move(pidfd), std::move(output),
                                                          std::move(ends.first), ::getpid()));
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const std::string& program,
                                                                    WorkerSetup setup) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<WorkerProcess> worker, spawn(program));
  setup.parent = worker->owner_;
  const absl::Status sent = worker->socket_.send(MessageType::setup, encode(setup),
                                                 std::chrono::steady_clock::now() + kSetupTimeout);
  // One that has ended already is asked how when its answer is wanted.
  if (!sent.ok() && !absl::IsUnavailable(sent)) return annotate(sent, program);
  return worker;
}

absl::Status WorkerProcess::read_answer(SteadyTime deadline) {
  absl::StatusOr<Frame> frame = socket_.receive(deadline);
  if (!frame.ok()) return broken(frame.status(), "before it answered");
  if (frame->type == MessageType::failure) return decode_failure(frame->payload);
  const absl::Status hello = frame->type == MessageType::hello
                                 ? decode(frame->payload, id_)
                                 : absl::DataLossError("worker protocol: want a hello");
  has_answered_ = hello.ok();
  return hello.ok() ? hello : broken(hello, "before it answered");
}

absl::StatusOr<CompileResult> WorkerProcess::compile(const CompileRequest& request,
                                                     SteadyTime deadline) {
  const absl::Status sent = socket_.send(MessageType::request, encode(request), deadline);
  // One that has ended may still have left an answer: that it was out of memory, say.
  if (!sent.ok() && !absl::IsUnavailable(sent)) return broken(sent, "while it compiled");
  absl::StatusOr<Frame> frame = socket_.receive(deadline);
  if (!frame.ok()) return broken(frame.status(), "while it compiled");
  if (frame->type == MessageType::failure) {
    absl::Status failure = decode_failure(frame->payload);
    // Out of memory: what it holds is better given back.
    if (absl::IsResourceExhausted(failure)) usable_ = false;
    return absl::IsDataLoss(failure) ? broken(failure, "while it compiled") : failure;
  }
  CompileResult result;
  const absl::Status decoded = frame->type == MessageType::result
                                   ? decode(frame->payload, result)
                                   : absl::DataLossError("worker protocol: want a result");
  if (!decoded.ok()) return broken(decoded, "while it compiled");
  return result;
}

absl::Status WorkerProcess::broken(const absl::Status& cause, const char* when) {
  usable_ = false;
  if (absl::IsUnavailable(cause)) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("compile worker %d: %s %s", pid_, end(), when));
  }
  kill();
  if (absl::IsDeadlineExceeded(cause)) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "compile worker %d: must be done within the time limit: it was not and was killed %s", pid_,
        when));
  }
  return absl::InternalError(absl::StrFormat("compile worker %d: %s; it was killed %s: it %s", pid_,
                                             message_of(cause), when, end()));
}

void WorkerProcess::kill() {
  if (reaped_) return;
  // By the descriptor: the number may be another process's by now if the host reaps our children.
  if (pidfd_.valid()) {
    ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  } else {
    ::kill(pid_, SIGKILL);
  }
}

std::string WorkerProcess::end() {
  std::string how =
      "ended in a way that the host hides (it ignores SIGCHLD or reaps children itself)";
  if (!reaped_) {
    socket_.close();  // who ends only now, ends because of this
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    if (pid == pid_ && WIFSIGNALED(status)) {
      how = absl::StrFormat("ended by signal %d (%s)", WTERMSIG(status),
                            sigdescr_np(WTERMSIG(status)));
    } else if (pid == pid_) {
      how = absl::StrFormat("ended with status %d", WEXITSTATUS(status));
      went_idle_ = WEXITSTATUS(status) == 0;
    }
  }
  const off_t size = ::lseek(output_.get(), 0, SEEK_END);
  std::string printed(static_cast<std::size_t>(std::clamp<off_t>(size, 0, kMaxOutputBytes)), '\0');
  const ssize_t got = ::pread(output_.get(), printed.data(), printed.size(),
                              std::max<off_t>(size - kMaxOutputBytes, 0));
  printed.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  absl::StripAsciiWhitespace(&printed);
  return printed.empty() ? how : absl::StrFormat("%s, having printed '%s'", how, printed);
}

WorkerProcess::~WorkerProcess() {
  // In a forked child it is not ours: the process, its sockets' other end and its number are the
  // parent's.
  if (::getpid() != owner_ || reaped_) return;
  kill();
  end();
}

}  // namespace kiln::jit
