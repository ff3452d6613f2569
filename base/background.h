#ifndef KILN_BASE_BACKGROUND_H_
#define KILN_BASE_BACKGROUND_H_

#include <kiln/export.h>

#include "base/mutex.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace kiln {

// Runs jobs on threads of its own, first come, first served. Threads are started when there is work
// for them, up to `max_threads`, and stay. Jobs must not throw, and must not wait for jobs that
// come after them. The destructor drops jobs that have not begun and waits for the others; in a
// forked child, where the threads do not exist, it waits for nothing. Thread-safe.
class KILN_EXPORT Background {
 public:
  explicit Background(int max_threads);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Where no thread can be had at all, the job runs in the call.
  void run(std::function<void()> job);
  // What the destructor does, early: for an owner whose jobs use what goes before this does. Jobs
  // that come later never run.
  void stop();

 private:
  // What the threads work on: left behind when a forked child destroys its copy.
  struct State {
    Mutex mutex;
    CondVar changed;
    std::deque<std::function<void()>> jobs ABSL_GUARDED_BY(mutex);
    int idle ABSL_GUARDED_BY(mutex) = 0;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
  };
  static void work(State& state);

  const int max_threads_;
  const std::int64_t owner_;
  std::unique_ptr<State> state_;
  std::vector<std::thread> threads_;  // added to under state_->mutex
};

}  // namespace kiln

#endif  // KILN_BASE_BACKGROUND_H_
