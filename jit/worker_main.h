#ifndef KILN_JIT_WORKER_MAIN_H_
#define KILN_JIT_WORKER_MAIN_H_

#include <kiln/export.h>

namespace kiln::jit {

// How a worker ends other than by 0 (its host is gone, or it was idle for long enough).
inline constexpr int kWorkerUsage = 2;  // started by a person, or spoken to in another language
inline constexpr int kWorkerOutOfMemory = 86;  // its memory limit; it has printed the figures

// The life of a compile worker, which is all that kiln-compile-worker does: speaks the worker
// protocol on the socket `fd` until the host closes it. Returns the exit status. Ends the process
// itself when its host dies or the memory limit is passed during a compilation.
KILN_EXPORT int run_compile_worker(int fd);

}  // namespace kiln::jit

#endif  // KILN_JIT_WORKER_MAIN_H_
