#include "jit/worker_main.h"

#include <kiln/status.h>

#include "jit/frame_socket.h"
#include "jit/nvrtc_compiler.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace kiln::jit {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How often a worker looks at its memory and at its host.
constexpr suseconds_t kWatchPeriodUs = 20000;
// A host that does not read is as good as gone.
constexpr std::chrono::seconds kSendTimeout{60};

// What the signal handler knows; written before there are signals.
struct Watched {
  pid_t parent = 0;
  std::int64_t limit_bytes = 0;
  std::int64_t page_bytes = 0;
  int statm = -1;  // /proc/self/statm
};
Watched watched;

// From here on only what a signal handler may call: no memory, no streams, no formatting. And no
// function of the C library that a preloaded library may wrap (profilers and tracers do): its
// wrapper would allocate in the middle of an allocation.

std::int64_t resident_bytes() {  // of this process; 0 when the system does not tell
  char text[128];
  const long size = ::syscall(SYS_pread64, watched.statm, text, sizeof text, 0L);
  const char* const end = text + (size > 0 ? size : 0);
  const char* const space = std::find(static_cast<const char*>(text), end, ' ');
  std::int64_t pages = 0;
  if (space != end) std::from_chars(space + 1, end, pages);
  return pages * watched.page_bytes;
}

void print(std::string_view text) {
  ::syscall(SYS_write, STDOUT_FILENO, text.data(), text.size());  // or nothing can be done
}
void print(std::int64_t number) {
  char text[24];
  print(std::string_view(text, std::to_chars(text, text + sizeof text, number).ptr));
}

// Ends the process when its host is gone or it has taken too much memory; the host tells what was
// printed. The host's end is seen by the number of our parent and not by the socket alone: a child
// that the host forked holds that open. (PR_SET_PDEATHSIG will not do: it is sent when the thread
// that spawned us ends.)
void look(int) {
  const int saved = errno;
  if (::syscall(SYS_getppid) != watched.parent) ::syscall(SYS_exit_group, 0);
  if (watched.limit_bytes > 0) {
    const std::int64_t used = resident_bytes();
    if (used > watched.limit_bytes) {
      print("one compilation must stay below the memory limit: want at most ");
      print(watched.limit_bytes);
      print(" bytes, got ");
      print(used);
      ::syscall(SYS_exit_group, kWorkerOutOfMemory);
    }
  }
  errno = saved;
}

// By a timer's signal, not by a thread: in a process with one thread the C library takes no locks
// when it allocates, which NVRTC's front end does all the time (a thread that only sleeps made a
// kernel with cuda_fp16.h 5 to 8 % slower to compile).
void start_watching(const WorkerSetup& setup) {
  watched = {static_cast<pid_t>(setup.parent), setup.memory_limit_bytes, ::sysconf(_SC_PAGESIZE),
             ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)};
  struct sigaction action = {};
  action.sa_handler = look;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  const timeval period = {.tv_sec = 0, .tv_usec = kWatchPeriodUs};
  const itimerval timer = {.it_interval = period, .it_value = period};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

absl::Status serve_request(const Compiler& compiler, const Frame& frame, FrameSocket& socket) {
  CompileRequest request;
  absl::Status status = frame.type == MessageType::request
                            ? decode(frame.payload, request)
                            : absl::DataLossError("worker protocol: want a request");
  KILN_RETURN_IF_ERROR(status);
  absl::StatusOr<CompileResult> result;
  try {
    result = compiler.compile(request);
  } catch (const std::exception& e) {  // out of address space, most likely
    result = absl::ResourceExhaustedError(absl::StrFormat("compile worker: %s", e.what()));
  }
  return result.ok()
             ? socket.send(MessageType::result, encode(*result), steady_clock::now() + kSendTimeout)
             : socket.send(MessageType::failure, encode(result.status()),
                           steady_clock::now() + kSendTimeout);
}

}  // namespace

int run_compile_worker(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    std::fputs(
        "kiln-compile-worker compiles for a process that uses Kiln, which starts it itself; it is "
        "not "
        "run by hand.\n",
        stderr);
    return kWorkerUsage;
  }
  FrameSocket socket{Fd(fd)};
  const absl::StatusOr<Frame> first = socket.receive(steady_clock::now() + kSendTimeout);
  WorkerSetup setup;
  if (!first.ok() || first->type != MessageType::setup || !decode(first->payload, setup).ok())
    return kWorkerUsage;

  const std::unique_ptr<Compiler> compiler = make_nvrtc_compiler(setup.nvrtc);
  const absl::StatusOr<CompilerId> id = compiler->id();
  const auto deadline = steady_clock::now() + kSendTimeout;
  const absl::Status told = id.ok()
                                ? socket.send(MessageType::hello, encode(*id), deadline)
                                : socket.send(MessageType::failure, encode(id.status()), deadline);
  if (!told.ok() || !id.ok()) ::_exit(0);
  start_watching(setup);
  while (true) {
    const absl::StatusOr<Frame> frame =
        socket.receive(steady_clock::now() + milliseconds(setup.idle_ms));
    // At once, and without destructors: NVRTC's may take long.
    if (!frame.ok()) ::_exit(absl::IsDataLoss(frame.status()) ? kWorkerUsage : 0);
    if (!serve_request(*compiler, *frame, socket).ok()) ::_exit(kWorkerUsage);
  }
}

}  // namespace kiln::jit
