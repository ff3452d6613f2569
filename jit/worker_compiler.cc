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

  absl::StatusOr<CompilerId> id() const override;
  absl::StatusOr<CompileResult> compile(const CompileRequest& request) const override;
  void prepare() const override;
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
  // for one that was started just now.
  absl::StatusOr<Worker> take(bool fresh) const;
  void give_back(Worker worker) const;
  absl::StatusOr<Worker> start() const;
  // Makes sure of a worker: that it answers, and is of our NVRTC.
  absl::Status admit(WorkerProcess& worker) const;
  // Reads the answer of one that was only started.
  absl::Status greet(WorkerProcess& worker) const;
  // Of a worker that `prepare` started; nullopt: there is none, or it does not answer.
  std::optional<CompilerId> prepared_id() const;
  absl::StatusOr<CompileResult> compile_here(const CompileRequest& request) const;
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
  mutable Mutex id_mutex_;  // taken before mutex_
  // Who compiles, once known: every worker is, or compiles nothing. It changes at most once, from
  // what a worker said to what this process has.
  mutable std::optional<CompilerId> id_ ABSL_GUARDED_BY(id_mutex_);
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

absl::StatusOr<CompilerId> Pool::id() const {
  if (::getpid() != owner_) return in_process_->id();
  MutexLock lock(id_mutex_);
  // A worker that has opened NVRTC says which it is, and spares this process to open it.
  if (!id_) id_ = prepared_id();
  if (!id_) {
    KILN_ASSIGN_OR_RETURN(id_, in_process_->id());
  }
  return *id_;
}

std::optional<CompilerId> Pool::prepared_id() const {
  Worker worker;
  {
    MutexLock lock(mutex_);
    if (idle_.empty()) return std::nullopt;
    worker = std::move(idle_.back().worker);
    idle_.pop_back();
  }
  // Where NVRTC is open already another part of this process may have chosen it, and that is the
  // one to use. Looked for only now: those who find their artifacts have no worker, and it takes
  // time.
  if (is_nvrtc_open(options_.nvrtc)) {
    give_back(std::move(worker));
    return std::nullopt;
  }
  if (greet(*worker).ok()) {
    const CompilerId id = worker->id();
    give_back(std::move(worker));
    MutexLock lock(mutex_);
    ++stats_.started;
    return id;
  }
  worker = nullptr;  // outside of the lock
  MutexLock lock(mutex_);
  --running_;  // who has work for it tries again, and tells
  freed_->notify_all();
  return std::nullopt;
}

absl::StatusOr<CompileResult> Pool::compile_here(const CompileRequest& request) const {
  KILN_ASSIGN_OR_RETURN(const CompilerId here, in_process_->id());
  {
    MutexLock lock(id_mutex_);
    id_ = here;
  }
  return in_process_->compile(request);
}

absl::StatusOr<CompileResult> Pool::compile(const CompileRequest& request) const {
  // First of all, and without a lock: another thread may have held it at the fork.
  KILN_RETURN_IF_ERROR(check_not_forked(owner_, "compile workers"));
  KILN_RETURN_IF_ERROR(id().status());  // without NVRTC no worker can help
  for (bool fresh = false;; fresh = true) {
    KILN_ASSIGN_OR_RETURN(Worker worker, take(fresh));
    if (worker == nullptr) return compile_here(request);
    absl::StatusOr<CompileResult> result =
        worker->compile(request, steady_clock::now() + options_.time_limit);
    const bool again = worker->went_idle() && !fresh;
    give_back(std::move(worker));
    // It ended, as idle ones do, before it saw this request.
    if (again) continue;
    return result;
  }
}

void Pool::prepare() const {
  if (::getpid() != owner_) return;
  {
    MutexLock lock(mutex_);
    if (running_ > 0 || given_up()) return;
    ++running_;
  }
  absl::StatusOr<Worker> worker = start();
  MutexLock lock(mutex_);
  if (worker.ok()) {
    idle_.push_back({*std::move(worker), steady_clock::now()});
    watch_idle();
  } else {
    --running_;  // who has work for it tries again, and tells
  }
  freed_->notify_all();
}

absl::StatusOr<Pool::Worker> Pool::take(bool fresh) const {
  absl::StatusOr<Worker> worker = Worker();
  std::vector<Idle> stale;  // ended outside of the lock
  {
    MutexLock lock(mutex_);
    while (true) {
      if (fresh) {
        running_ -= static_cast<int>(idle_.size());
        stale = std::exchange(idle_, {});
      }
      if (!idle_.empty()) {
        worker = std::move(idle_.back().worker);
        idle_.pop_back();
        break;
      }
      if (given_up()) {
        ++stats_.in_process;
        return Worker();
      }
      if (running_ < std::max(options_.max_workers, 1)) {
        ++running_;
        break;
      }
      freed_->wait(mutex_);
    }
  }
  stale.clear();
  if (*worker == nullptr) worker = start();
  const absl::Status fit = worker.ok() ? admit(**worker) : worker.status();
  if (fit.ok()) return worker;
  log_once(LogLevel::warning, "compile workers: " + options_.worker,
           absl::StrFormat(
               "compile workers: kernels are compiled in this process, one at a time and without "
               "limits, since no worker can be started: %s",
               message_of(fit)));
  worker = Worker();  // ends it, outside of the lock
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
  return WorkerProcess::start(options_.worker, setup_);
}

absl::Status Pool::greet(WorkerProcess& worker) const {
  const absl::Status answer = worker.read_answer(steady_clock::now() + options_.start_limit);
  return answer.ok() ? answer : annotate(answer, options_.worker);
}

absl::Status Pool::admit(WorkerProcess& worker) const {
  const bool is_new = !worker.has_answered();
  if (is_new) KILN_RETURN_IF_ERROR(greet(worker));
  KILN_ASSIGN_OR_RETURN(const CompilerId ours, id());
  if (worker.id() != ours) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: must use the NVRTC of its host: want %s with headers %s, got %s with headers %s",
        options_.worker, ours.build, ours.headers, worker.id().build, worker.id().headers));
  }
  MutexLock lock(mutex_);
  if (is_new) ++stats_.started;
  return absl::OkStatus();
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
