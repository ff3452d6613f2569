#ifndef KILN_JIT_WORKER_COMPILER_H_
#define KILN_JIT_WORKER_COMPILER_H_

#include <kiln/compiler.h>
#include <kiln/export.h>

#include "jit/nvrtc_library.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace kiln::jit {

struct WorkerOptions {
  std::string worker;   // path of kiln-compile-worker; see find_compile_worker
  int max_workers = 1;  // processes at the same time
  NvrtcOptions nvrtc;   // as the in-process compiler's
  std::chrono::milliseconds time_limit = std::chrono::seconds(120);  // of one compilation
  std::int64_t memory_limit_bytes = 4ll << 30;                // resident, of one worker; 0: none
  std::chrono::milliseconds idle = std::chrono::seconds(30);  // a worker without work ends after it
  std::chrono::milliseconds start_limit =
      std::chrono::seconds(20);  // until a started worker answers
};

struct WorkerStats {
  std::int64_t started = 0;     // worker processes
  std::int64_t lost = 0;        // of these, ended by a crash, a limit or a wrong answer
  std::int64_t in_process = 0;  // compilations done here, because no worker could be started
};

// Compiles in worker processes: NVRTC's front end takes one thread at a time in a process, and only
// a process can be stopped at a deadline, limited in memory, or crash without its host. Workers are
// started when there is work for them and none is idle, up to `max_workers`; more calls than that
// wait. They end when they were idle for long enough, or when their host has ended, however it did.
//
// A worker that crashes, hangs past the time limit, runs out of memory or answers nonsense fails
// the one compilation it had, and the next one gets another. Where a worker cannot be started, or
// is of another build, there is one warning, and compilation runs in this process (without limits),
// for a minute before it is tried again.
//
// `prepare` starts the first worker. Its NVRTC then gives the `id`, unless this process has one
// open, and is opened nowhere else; a worker of another id is of another build. Where this process
// has to compile after all, the `id` becomes that of its own NVRTC, and stays that.
//
// After fork() a child does not compile: FailedPrecondition. Thread-safe.
class KILN_EXPORT WorkerCompiler : public Compiler {
 public:
  virtual WorkerStats stats() const = 0;
};

// `in_process` compiles where no worker can be started, and gives the id where none was prepared.
KILN_EXPORT std::unique_ptr<WorkerCompiler> make_worker_compiler(
    WorkerOptions options, std::unique_ptr<Compiler> in_process);

// Where the worker is: `named` and nothing else where it is given; else the first that exists of
// kiln-compile-worker in the folder of the file that holds this library (libkiln.so, or the
// executable that Kiln is linked into), in that folder's ../bin, ../../bin and ../libexec/kiln, and
// beside the running executable. Empty when there is none. A file that exists and cannot be run is
// found too, so that the warning can name it.
KILN_EXPORT std::string find_compile_worker(const std::string& named);

// Processors that this process may use: the width of a pool by default.
KILN_EXPORT int usable_cores();

}  // namespace kiln::jit

#endif  // KILN_JIT_WORKER_COMPILER_H_
