#include "jit/worker_compiler.h"

#include <kiln/status.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/process.h"
#include "jit/worker_process.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::jit {
namespace {

using std::chrono::steady_clock;

// How long workers are not tried again after one could not be started.
constexpr std::chrono::seconds kRetryPeriod{60};

class Pool final : public WorkerCompiler {
 public:
  Pool(WorkerOptions options, std::unique_ptr<Compiler> in_process)
      : options_(std::move(options)), owner_(::getpid()), in_process_(std::move(in_process)) {
    setup_.nvrtc = options_.nvrtc;
    setup_.memory_limit_bytes = options_.memory_limit_bytes;
    // Ours is the one that counts; this is for when the host cannot start the thread that looks.
    setup_.idle_ms = 2 * options_.idle.count();
  }
  ~Pool() override;

  absl::StatusOr<CompilerId> id() const override { return in_process_->id(); }
  absl::StatusOr<CompileResult> compile(const CompileRequest& request) const override;
  WorkerStats stats() const override {
    MutexLock lock(mutex_);
    return stats_;
  }

 private:
  using Worker = std::unique_ptr<WorkerProcess>;
  struct Idle {
    Worker worker;
    SteadyTime since;
  };
  // A worker to use, which `give_back` takes again; null where none can be started. `fresh` asks
  // for one that was never idle.
  absl::StatusOr<Worker> take(bool fresh) const;
  void give_back(Worker worker) const;
  absl::StatusOr<Worker> start() const;
  // Ends workers that were idle for long enough; runs in a thread that lives as long as there are
  // any.
  void end_idle() const;
  void watch_idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool given_up() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return retry_at_ && steady_clock::now() < *retry_at_;
  }

  const WorkerOptions options_;
  const pid_t owner_;
  const std::unique_ptr<Compiler> in_process_;
  WorkerSetup setup_;
  mutable Mutex mutex_;
  // Apart from the pool, which leaves them behind when it is destroyed in a forked child: they may
  // have waiters there that do not exist, and destroying them would wait for these.
  mutable std::unique_ptr<CondVar> freed_ = std::make_unique<CondVar>();
  mutable std::unique_ptr<CondVar> idle_changed_ = std::make_unique<CondVar>();
  mutable std::vector<Idle> idle_ ABSL_GUARDED_BY(mutex_);  // the last one was used last
  mutable int running_ ABSL_GUARDED_BY(mutex_) = 0;         // workers, idle ones included
  mutable std::optional<SteadyTime> retry_at_ ABSL_GUARDED_BY(mutex_);
  mutable WorkerStats stats_ ABSL_GUARDED_BY(mutex_);
  mutable bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  mutable bool watching_ ABSL_GUARDED_BY(mutex_) =
      false;                     // false: `watcher_` has ended or is about to
  mutable std::thread watcher_;  // started and joined under mutex_
};

Pool::~Pool() {
  if (::getpid() != owner_) {
    if (watcher_.joinable()) watcher_.detach();  // threads do not cross a fork: there is none
    (void)freed_.release();
    (void)idle_changed_.release();
    return;
  }
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    idle_changed_->notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
}

void Pool::end_idle() const {
  while (true) {
    std::optional<Idle> ended;  // destroyed outside of the lock
    MutexLock lock(mutex_);
    if (stopping_ || idle_.empty()) {
      watching_ = false;
      return;
    }
    const auto now = steady_clock::now();
    const auto next = idle_.front().since + options_.idle;  // the longest without work
    if (next > now) {
      idle_changed_->wait_for(mutex_, absl::FromChrono(next - now));
      continue;
    }
    ended = std::move(idle_.front());
    idle_.erase(idle_.begin());
    --running_;
  }
}

void Pool::watch_idle() const {
  if (watching_ || stopping_) return;
  if (watcher_.joinable()) watcher_.join();
  try {
    watcher_ = std::thread([this] { end_idle(); });
    watching_ = true;
  } catch (const std::system_error&) {
    // No thread to be had: the workers end by themselves.
  }
}

absl::StatusOr<CompileResult> Pool::compile(const CompileRequest& request) const {
  // First of all, and without a lock: another thread may have held it at the fork.
  KILN_RETURN_IF_ERROR(check_not_forked(owner_, "compile workers"));
  KILN_RETURN_IF_ERROR(id().status());  // without NVRTC no worker can help
  for (bool fresh = false;; fresh = true) {
    KILN_ASSIGN_OR_RETURN(Worker worker, take(fresh));
    if (worker == nullptr) return in_process_->compile(request);
    absl::StatusOr<CompileResult> result =
        worker->compile(request, steady_clock::now() + options_.time_limit);
    const bool again = worker->went_idle() && !fresh;
    give_back(std::move(worker));
    // It ended, as idle ones do, before it saw this request.
    if (again) continue;
    return result;
  }
}

absl::StatusOr<Pool::Worker> Pool::take(bool fresh) const {
  std::vector<Idle> stale;  // ended outside of the lock
  {
    MutexLock lock(mutex_);
    while (true) {
      if (fresh) {
        running_ -= static_cast<int>(idle_.size());
        stale = std::exchange(idle_, {});
      }
      if (!idle_.empty()) {
        Worker worker = std::move(idle_.back().worker);
        idle_.pop_back();
        return worker;
      }
      if (given_up()) {
        ++stats_.in_process;
        return Worker();
      }
      if (running_ < std::max(options_.max_workers, 1)) break;
      freed_->wait(mutex_);
    }
    ++running_;
  }
  stale.clear();
  absl::StatusOr<Worker> worker = start();
  if (worker.ok()) return worker;
  log_once(LogLevel::warning, "compile workers: " + options_.worker,
           absl::StrFormat(
               "compile workers: kernels are compiled in this process, one at a time and without "
               "limits, since no worker can be started: %s",
               message_of(worker.status())));
  MutexLock lock(mutex_);
  --running_;
  ++stats_.in_process;
  retry_at_ = steady_clock::now() + kRetryPeriod;
  freed_->notify_all();
  return Worker();
}

absl::StatusOr<Pool::Worker> Pool::start() const {
  if (options_.worker.empty()) {
    return absl::FailedPreconditionError(
        "kiln-compile-worker must lie beside libkiln or the executable, or KILN_COMPILE_WORKER "
        "name it: it was "
        "not found");
  }
  KILN_ASSIGN_OR_RETURN(const CompilerId ours, id());
  KILN_ASSIGN_OR_RETURN(
      Worker worker,
      WorkerProcess::start(options_.worker, setup_, steady_clock::now() + options_.start_limit));
  if (worker->id() != ours) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: must use the NVRTC of its host: want %s with headers %s, got %s with headers %s",
        options_.worker, ours.build, ours.headers, worker->id().build, worker->id().headers));
  }
  MutexLock lock(mutex_);
  ++stats_.started;
  return worker;
}

void Pool::give_back(Worker worker) const {
  MutexLock lock(mutex_);
  if (worker->usable()) {
    idle_.push_back({std::move(worker), steady_clock::now()});
    watch_idle();
  } else {
    --running_;
    if (!worker->went_idle()) ++stats_.lost;
  }
  freed_->notify_all();
}

}  // namespace

std::unique_ptr<WorkerCompiler> make_worker_compiler(WorkerOptions options,
                                                     std::unique_ptr<Compiler> in_process) {
  return std::make_unique<Pool>(std::move(options), std::move(in_process));
}

}  // namespace kiln::jit
