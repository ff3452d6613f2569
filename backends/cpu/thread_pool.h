#ifndef KILN_BACKENDS_CPU_THREAD_POOL_H_
#define KILN_BACKENDS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>

namespace kiln::cpu {

// Threads that share the chunks of a piece of work with the thread that brings it.
//
// Thread-safe: any number of threads may bring work at once. Threads start with the first work that
// can use them, so making a pool costs nothing. A process that was forked from one with a pool gets
// threads of its own at its first use; what the parent's were doing at that moment is not waited
// for.
class ThreadPool {
 public:
  // Work on chunk `chunk`; must not throw and must not bring work to the same pool.
  using Body = void (*)(void* context, std::int64_t chunk) noexcept;

  // `threads` in all, the bringing one included; at least 1.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  // REQUIRES: no work is running.
  ~ThreadPool();

  int threads() const { return threads_; }

  // Runs body(context, i) for every i in [0, chunks), and returns when all have ended. What they
  // wrote is visible to the caller then. Where the system gives no more threads, fewer do the work.
  void run(std::int64_t chunks, Body body, void* context);

 private:
  struct State;
  State* current_state();

  const int threads_;
  std::atomic<State*> state_{nullptr};
};

}  // namespace kiln::cpu

#endif  // KILN_BACKENDS_CPU_THREAD_POOL_H_
