#include "thread_pool.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <system_error>
#include <thread>
#include <vector>

namespace kiln::cpu {
namespace {

// How many forks lie between the first process and this one: threads and locked mutexes of another
// generation are nothing to wait for.
std::atomic<unsigned> fork_generation{0};

void watch_forks() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
}

struct Job {
  std::int64_t chunks;
  ThreadPool::Body body;
  void* context;
  std::atomic<std::int64_t> next{0};
  int helpers = 0;  // threads of the pool inside work(); guarded by State::mutex

  void work() {
    for (;;) {
      const std::int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks) return;
      body(context, chunk);
    }
  }
};

// The pool's threads must not take signals that the program's own threads wait for.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

struct ThreadPool::State {
  explicit State(int helpers) : wanted(helpers) {}

  void start_threads();
  void serve();
  void remove(Job* job) { std::erase(jobs, job); }

  const unsigned generation = fork_generation.load(std::memory_order_relaxed);
  const int wanted;
  std::mutex mutex;
  std::condition_variable arrived;  // a job, or the end
  std::condition_variable ended;    // of a helper's part in a job
  bool started = false;
  bool stopping = false;
  std::vector<Job*> jobs;  // those with chunks that nobody has taken yet
  std::vector<std::thread> threads;
};

// REQUIRES: `mutex` is held.
void ThreadPool::State::start_threads() {
  if (started) return;
  started = true;
  const BlockedSignals blocked;
  threads.reserve(static_cast<std::size_t>(wanted));
  for (int i = 0; i < wanted; ++i) {
    try {
      threads.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      return;
    }
  }
}

void ThreadPool::State::serve() {
  std::unique_lock lock(mutex);
  for (;;) {
    arrived.wait(lock, [this] { return stopping || !jobs.empty(); });
    if (stopping) return;
    Job* const job = jobs.front();
    ++job->helpers;
    lock.unlock();
    job->work();
    lock.lock();
    remove(job);
    if (--job->helpers == 0) ended.notify_all();
  }
}

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)) { watch_forks(); }

ThreadPool::~ThreadPool() {
  State* const state = state_.load();
  // Threads of a parent process cannot be joined, and their mutex may be held for ever: left as
  // they are.
  if (state == nullptr || state->generation != fork_generation.load()) return;
  {
    const std::lock_guard lock(state->mutex);
    state->stopping = true;
  }
  state->arrived.notify_all();
  for (std::thread& thread : state->threads) thread.join();
  delete state;
}

ThreadPool::State* ThreadPool::current_state() {
  State* state = state_.load(std::memory_order_acquire);
  while (state == nullptr || state->generation != fork_generation.load(std::memory_order_relaxed)) {
    auto fresh = std::make_unique<State>(threads_ - 1);
    if (state_.compare_exchange_strong(state, fresh.get(), std::memory_order_acq_rel))
      return fresh.release();
  }
  return state;
}

void ThreadPool::run(std::int64_t chunks, Body body, void* context) {
  Job job{.chunks = chunks, .body = body, .context = context};
  if (threads_ == 1 || chunks <= 1) {
    job.work();
    return;
  }
  State& state = *current_state();
  {
    const std::lock_guard lock(state.mutex);
    state.start_threads();
    state.jobs.push_back(&job);
  }
  if (chunks - 1 < threads_ - 1) {
    for (std::int64_t i = 1; i < chunks; ++i) state.arrived.notify_one();
  } else {
    state.arrived.notify_all();
  }
  job.work();
  std::unique_lock lock(state.mutex);
  state.remove(&job);
  state.ended.wait(lock, [&job] { return job.helpers == 0; });
}

}  // namespace kiln::cpu
