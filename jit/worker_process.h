#ifndef KILN_JIT_WORKER_PROCESS_H_
#define KILN_JIT_WORKER_PROCESS_H_

#include <kiln/compiler.h>

#include "base/fd.h"
#include "jit/frame_socket.h"
#include "jit/worker_protocol.h"

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <sys/types.h>

namespace kiln::jit {

// One compile worker, started by posix_spawn. One thread at a time. The destructor ends and reaps
// it; in a process that was forked from the one that started it, it only closes the socket.
class WorkerProcess {
 public:
  // Starts `program` and tells it how to behave; does not wait for its answer. Errors:
  // FailedPrecondition (it cannot be run).
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> start(const std::string& program,
                                                              WorkerSetup setup);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Waits for its answer, which tells who it is. Errors: what it says that hinders it; as `compile`
  // for one that is no worker of this build.
  absl::Status read_answer(SteadyTime deadline);
  bool has_answered() const { return has_answered_; }
  const CompilerId& id() const { return id_; }  // REQUIRES: it has answered

  // Compiles, or says why not. REQUIRES: it has answered. After an error of the worker's own (it
  // died, or passed the deadline and was killed) it is not `usable` any more. `went_idle` tells
  // that it had ended by itself before it saw the request.
  absl::StatusOr<CompileResult> compile(const CompileRequest& request, SteadyTime deadline);
  bool usable() const { return usable_; }
  bool went_idle() const { return went_idle_; }

 private:
  WorkerProcess(pid_t pid, Fd pidfd, Fd output, Fd socket, pid_t owner)
      : pid_(pid),
        owner_(owner),
        pidfd_(std::move(pidfd)),
        output_(std::move(output)),
        socket_(std::move(socket)) {}
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> spawn(const std::string& program);
  void kill();
  // How it ended, with the end of what it printed: "ended by signal 11 (Segmentation fault): ...".
  // REQUIRES: it has closed its socket or was killed.
  std::string end();
  absl::Status broken(const absl::Status& cause, const char* when);

  const pid_t pid_;
  const pid_t owner_;
  Fd pidfd_;   // not valid where the kernel has none
  Fd output_;  // what it writes to stdout and stderr
  FrameSocket socket_;
  CompilerId id_;
  bool has_answered_ = false;
  bool usable_ = true;
  bool went_idle_ = false;
  bool reaped_ = false;
};

}  // namespace kiln::jit

#endif  // KILN_JIT_WORKER_PROCESS_H_
