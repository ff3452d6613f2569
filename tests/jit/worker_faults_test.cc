// The bad days of compile workers: each fails one compilation at most, says why, and leaves a pool
// that works.
#include <kiln/status.h>

#include "jit/worker_compiler.h"
#include "tests/jit/worker_test_util.h"

#include <gmock/gmock.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

namespace kiln::jit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WorkerFaultsTest : public testing::Test {
 protected:
  // A worker that behaves like `mode` of odd_worker.cc, under a name of its own.
  std::string odd_worker(const std::string& mode) {
    const std::string path = folder_.path() + "/worker." + mode;
    std::filesystem::create_symlink(KILN_ODD_WORKER, path);
    return path;
  }
  // A pool on `worker` must compile in this process, after one warning that holds `reason`.
  void expect_in_process(const std::string& worker, const std::string& reason,
                         std::chrono::seconds start_limit = std::chrono::seconds(60)) {
    Warnings warnings;
    WorkerOptions options = worker_options(2);
    options.worker = worker;
    options.start_limit = start_limit;
    const auto workers = real_workers(options);
    for (int i = 0; i < 3; ++i) {
      const auto result = workers->compile(numbered_request(i));
      EXPECT_TRUE(result.ok()) << result.status();
    }
    EXPECT_EQ(workers->stats().started, 0);
    EXPECT_EQ(workers->stats().in_process, 3);
    EXPECT_THAT(warnings.lines(), ElementsAre(HasSubstr(reason)));
    EXPECT_TRUE(live_children().empty());
  }
  // The pool's first worker behaves like `mode` once it has a request, the next ones well.
  absl::Status first_failure(const std::string& mode,
                             std::chrono::milliseconds time_limit = std::chrono::seconds(60)) {
    WorkerOptions options = worker_options(1);
    options.worker = odd_worker(mode);
    options.time_limit = time_limit;
    const auto workers = real_workers(options);
    const auto failed = workers->compile(numbered_request(0));
    std::filesystem::remove(options.worker);
    std::filesystem::create_symlink(KILN_COMPILE_WORKER_FILE, options.worker);
    const auto next = workers->compile(numbered_request(1));
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(workers->stats().lost, 1);
    EXPECT_EQ(workers->stats().started, 2);
    EXPECT_EQ(live_children().size(), 1u);
    return failed.status();
  }
  const ScratchFolder folder_;
};

TEST_F(WorkerFaultsTest, AMissingWorkerIsOneWarning) {
  expect_in_process(folder_.path() + "/none", "none: must be a program that can be run");
}

TEST_F(WorkerFaultsTest, AFileThatCannotBeRunIsOneWarning) {
  const std::string path = folder_.path() + "/plain";
  std::ofstream(path) << "not a program\n";
  ::chmod(path.c_str(), 0600);
  expect_in_process(path, "plain: must be a program that can be run");
  ::chmod(path.c_str(), 0700);
  std::filesystem::rename(path, folder_.path() + "/script");
  expect_in_process(folder_.path() + "/script", "script: must be a program that can be run");
}

TEST_F(WorkerFaultsTest, NoWorkerAtAllIsOneWarning) {
  expect_in_process("", "kiln-compile-worker must lie beside");
}

TEST_F(WorkerFaultsTest, AProgramThatEndsAtOnceIsNamedWithWhatItPrinted) {
  expect_in_process(odd_worker("exits"),
                    "ended with status 7, having printed 'no libfoo.so anywhere'");
}

TEST_F(WorkerFaultsTest, AProgramThatNeverAnswersIsOneWarning) {
  expect_in_process(odd_worker("mute"), "must be done within the time limit",
                    std::chrono::seconds(2));
}

TEST_F(WorkerFaultsTest, AProgramThatPrintsGarbageIsOneWarning) {
  expect_in_process(odd_worker("garbage"), "a frame must begin with KLNW: got 'Hello, world! I");
}

TEST_F(WorkerFaultsTest, AWorkerOfAnotherVersionIsOneWarning) {
  expect_in_process(odd_worker("older"), "must speak the same version: want 1, got 99");
}

TEST_F(WorkerFaultsTest, AWorkerWithAnotherNvrtcIsOneWarning) {
  expect_in_process(odd_worker("other"), "must use the NVRTC of its host");
}

TEST_F(WorkerFaultsTest, ACrashFailsOneCompilation) {
  const absl::Status failed = first_failure("crashes");
  EXPECT_TRUE(absl::IsResourceExhausted(failed)) << failed;
  EXPECT_TRUE(contains(failed, "ended by signal 6 (Aborted), having printed 'about to crash'"))
      << failed;
}

TEST_F(WorkerFaultsTest, AHangEndsAtTheTimeLimit) {
  const absl::Status failed = first_failure("hangs", std::chrono::seconds(8));
  EXPECT_TRUE(absl::IsDeadlineExceeded(failed)) << failed;
  EXPECT_TRUE(contains(failed, "was killed")) << failed;
}

TEST_F(WorkerFaultsTest, NonsenseIsNoResult) {
  for (const char* mode : {"nonsense", "flipped"}) {
    const absl::Status failed = first_failure(mode);
    EXPECT_TRUE(absl::IsInternal(failed)) << failed;
    EXPECT_TRUE(contains(failed, "worker protocol")) << failed;
  }
}

TEST_F(WorkerFaultsTest, HalfAResultIsNoResult) {
  const absl::Status failed = first_failure("torn");
  EXPECT_TRUE(absl::IsResourceExhausted(failed)) << failed;
  EXPECT_TRUE(contains(failed, "ended with status 3")) << failed;
}

TEST_F(WorkerFaultsTest, AnEndlessTemplateEndsAtTheTimeLimit) {
  WorkerOptions options = worker_options(1);
  options.time_limit = std::chrono::seconds(4);
  const auto workers = real_workers(options);
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  const auto start = std::chrono::steady_clock::now();
  const auto endless = workers->compile(endless_request());
  EXPECT_TRUE(absl::IsDeadlineExceeded(endless.status())) << endless.status();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_TRUE(workers->compile(numbered_request(1)).ok());
}

TEST_F(WorkerFaultsTest, AMemoryLimitEndsOneCompilation) {
  WorkerOptions options = worker_options(1);
  options.memory_limit_bytes = 700 << 20;  // well above an instrumented worker at rest
  const auto workers = real_workers(options);
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  const auto hungry = workers->compile(endless_request());
  EXPECT_TRUE(absl::IsResourceExhausted(hungry.status())) << hungry.status();
  EXPECT_TRUE(contains(hungry.status(), "memory limit: want at most 734003200 bytes, got "))
      << hungry.status();
  const auto next = workers->compile(numbered_request(1));
  EXPECT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(workers->stats().lost, 1);
}

// A profiler's library, say, that all child processes load: what watches a worker never calls it.
TEST_F(WorkerFaultsTest, APreloadedLibraryIsNotEnteredFromTheWatch) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's library must be the first";
#endif
  const std::string worker = folder_.path() + "/worker";
  std::ofstream(worker) << "#!/bin/sh\nLD_PRELOAD=" KILN_WRAPPED_FILES
                           " exec " KILN_COMPILE_WORKER_FILE " \"$@\"\n";
  ::chmod(worker.c_str(), 0700);
  WorkerOptions options = worker_options(1);
  options.worker = worker;
  options.time_limit = std::chrono::seconds(4);
  options.memory_limit_bytes = std::int64_t{8} << 30;
  const auto workers = real_workers(options);
  const auto endless = workers->compile(endless_request());  // looked at 200 times
  EXPECT_TRUE(absl::IsDeadlineExceeded(endless.status())) << endless.status();
  EXPECT_TRUE(workers->compile(numbered_request(1)).ok());
  EXPECT_EQ(workers->stats().in_process, 0);
}

// NVRTC itself out of memory: its worker may get no more than it holds.
TEST_F(WorkerFaultsTest, AWorkerThatGetsNoMemoryFailsOneCompilation) {
  const auto workers = real_workers(worker_options(1));
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  const auto children = live_children();
  ASSERT_EQ(children.size(), 1u);
  const rlimit none = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
  ASSERT_EQ(::prlimit(children[0], RLIMIT_DATA, &none, nullptr), 0);
  const auto hungry = workers->compile(endless_request());
  EXPECT_TRUE(absl::IsResourceExhausted(hungry.status())) << hungry.status();
  EXPECT_FALSE(is_compile_error(hungry.status())) << "the source is not at fault";
  const auto next = workers->compile(numbered_request(1));
  EXPECT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(workers->stats().lost, 1);
}

TEST_F(WorkerFaultsTest, AWorkerThatIsKilledFailsOneCompilation) {
  const auto workers = real_workers(worker_options(1));
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  absl::StatusOr<CompileResult> result;
  std::thread caller([&] { result = workers->compile(endless_request()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto children = live_children();
  ASSERT_EQ(children.size(), 1u);
  ::kill(children[0], SIGSEGV);
  caller.join();
  EXPECT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
  EXPECT_TRUE(contains(result.status(), "while it compiled")) << result.status();
  EXPECT_TRUE(workers->compile(numbered_request(1)).ok());
}

TEST_F(WorkerFaultsTest, WithoutNvrtcTheErrorIsTheOneOfThisProcess) {
  WorkerOptions options = worker_options(1);
  options.nvrtc.library = folder_.path() + "/libnvrtc.so";
  const auto workers = real_workers(options);
  EXPECT_TRUE(absl::IsFailedPrecondition(workers->id().status()));
  const auto result = workers->compile(numbered_request(0));
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status())) << result.status();
  EXPECT_TRUE(contains(result.status(), "libnvrtc")) << result.status();
}

// A host that ignores SIGCHLD, or whose waitpid(-1) takes our children, only loses the reason.
TEST_F(WorkerFaultsTest, AHostThatReapsOurChildrenLosesOnlyTheReason) {
  struct sigaction action = {}, before = {};
  action.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGCHLD, &action, &before), 0);
  {
    const auto workers = real_workers(worker_options(1));
    EXPECT_TRUE(workers->compile(numbered_request(0)).ok());
    WorkerOptions options = worker_options(1);
    options.worker = odd_worker("crashes");
    const auto crashing = real_workers(options);
    const auto result = crashing->compile(numbered_request(1));
    EXPECT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
  }
  EXPECT_TRUE(live_children().empty());
  sigaction(SIGCHLD, &before, nullptr);
}

// The worker of a host that was killed ends by itself, also in the middle of a compilation.
TEST_F(WorkerFaultsTest, WorkersEndWithTheirHost) {
  int numbers[2];
  ASSERT_EQ(::pipe(numbers), 0);
  const pid_t host = ::fork();
  if (host == 0) {
    const auto workers = real_workers(worker_options(1));
    (void)workers->compile(numbered_request(0));
    const auto children = live_children();
    const pid_t worker = children.empty() ? 0 : children[0];
    (void)!::write(numbers[1], &worker, sizeof worker);
    (void)workers->compile(endless_request());
    ::_exit(0);
  }
  pid_t worker = 0;
  ASSERT_EQ(::read(numbers[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  ASSERT_GT(worker, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(host, SIGKILL);
  ASSERT_EQ(::waitpid(host, nullptr, 0), host);
  EXPECT_TRUE(eventually([&] {
    std::string stat;
    std::getline(std::ifstream("/proc/" + std::to_string(worker) + "/stat"), stat);
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  }));
  ::close(numbers[0]);
  ::close(numbers[1]);
}

}  // namespace
}  // namespace kiln::jit
