#include "base/background.h"

#include <algorithm>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace kiln {

Background::Background(int max_threads)
    : max_threads_(std::max(max_threads, 1)),
      owner_(::getpid()),
      state_(std::make_unique<State>()) {}

Background::~Background() {
  stop();
  for (std::thread& thread : threads_) thread.detach();  // a forked child's copies of the parent's
  if (::getpid() != owner_) (void)state_.release();
}

void Background::stop() {
  if (::getpid() != owner_) return;
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Background::work(State& state) {
  while (true) {
    std::function<void()> job;
    {
      MutexLock lock(state.mutex);
      ++state.idle;
      while (state.jobs.empty() && !state.stopping) state.changed.wait(state.mutex);
      --state.idle;
      if (state.stopping) return;
      job = std::move(state.jobs.front());
      state.jobs.pop_front();
    }
    job();
  }
}

void Background::run(std::function<void()> job) {
  std::function<void()> ours;  // there is no thread to do it
  {
    MutexLock lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
    const auto wanted = static_cast<std::size_t>(state_->idle);
    if (wanted < state_->jobs.size() && static_cast<int>(threads_.size()) < max_threads_) {
      try {
        threads_.emplace_back([&state = *state_] { work(state); });
      } catch (const std::system_error&) {
        if (threads_.empty()) {
          ours = std::move(state_->jobs.front());
          state_->jobs.pop_front();
        }
      }
    }
    state_->changed.notify_all();
  }
  if (ours) ours();
}

}  // namespace kiln
