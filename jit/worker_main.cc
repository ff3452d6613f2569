#include "jit/worker_main.h"

#include <kiln/status.h>

#include "base/mutex.h"
#include "jit/frame_socket.h"
#include "jit/nvrtc_compiler.h"

#include <absl/strings/str_format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kiln::jit {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How often a worker looks at its memory and at its host.
constexpr milliseconds kWatchPeriod{20};
// A host that does not read is as good as gone.
constexpr std::chrono::seconds kSendTimeout{60};

// Resident bytes of this process; 0 when the system does not tell.
std::int64_t resident_bytes() {
  std::string text;
  std::getline(std::ifstream("/proc/self/statm"), text);
  const std::size_t space = text.find(' ');
  std::int64_t pages = 0;
  if (space == text.npos) return 0;
  std::from_chars(text.data() + space + 1, text.data() + text.size(), pages);
  return pages * ::sysconf(_SC_PAGESIZE);
}

// Sends what comes of a request, once: the compilation's outcome or the watcher's.
class Answer {
 public:
  explicit Answer(FrameSocket& socket) : socket_(socket) {}
  absl::Status send(MessageType type, std::string_view payload) {
    MutexLock lock(mutex_);
    return socket_.send(type, payload, steady_clock::now() + kSendTimeout);
  }
  // Sends a failure and ends the process; nothing is sent after it.
  [[noreturn]] void fail_and_end(const absl::Status& failure, int exit_status) {
    MutexLock lock(mutex_);
    socket_.send(MessageType::failure, encode(failure), steady_clock::now() + kSendTimeout)
        .IgnoreError();
    ::_exit(exit_status);
  }

 private:
  Mutex mutex_;
  FrameSocket& socket_;
};

// Ends the process when its host is gone or it has taken too much memory. The host's end is seen by
// the number of our parent and not by the socket alone: a child that the host forked holds that
// open. (PR_SET_PDEATHSIG will not do: it is sent when the thread that spawned us ends.)
void watch(const WorkerSetup& setup, Answer& answer) {
  while (true) {
    std::this_thread::sleep_for(kWatchPeriod);
    if (::getppid() != setup.parent) ::_exit(0);
    if (setup.memory_limit_bytes <= 0) continue;
    const std::int64_t used = resident_bytes();
    if (used <= setup.memory_limit_bytes) continue;
    answer.fail_and_end(absl::ResourceExhaustedError(
                            absl::StrFormat("compile worker: one compilation must stay below the "
                                            "memory limit: want at most %d bytes, got %d",
                                            setup.memory_limit_bytes, used)),
                        kWorkerOutOfMemory);
  }
}

absl::Status serve_request(const Compiler& compiler, const Frame& frame, Answer& answer) {
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
  if (result.ok()) return answer.send(MessageType::result, encode(*result));
  return answer.send(MessageType::failure, encode(result.status()));
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

  // Shared with a thread that never ends.
  Answer& answer = *new Answer(socket);
  const std::unique_ptr<Compiler> compiler = make_nvrtc_compiler(setup.nvrtc);
  const absl::StatusOr<CompilerId> id = compiler->id();
  const absl::Status told = id.ok() ? answer.send(MessageType::hello, encode(*id))
                                    : answer.send(MessageType::failure, encode(id.status()));
  if (!told.ok() || !id.ok()) ::_exit(0);
  std::thread(watch, setup, std::ref(answer)).detach();
  while (true) {
    const absl::StatusOr<Frame> frame =
        socket.receive(steady_clock::now() + milliseconds(setup.idle_ms));
    // At once, and without destructors: the watcher is still running.
    if (!frame.ok()) ::_exit(absl::IsDataLoss(frame.status()) ? kWorkerUsage : 0);
    if (!serve_request(*compiler, *frame, answer).ok()) ::_exit(kWorkerUsage);
  }
}

}  // namespace kiln::jit
