#include "jit/worker_compiler.h"

#include <kiln/status.h>

#include "jit/engine.h"
#include "tests/jit/worker_test_util.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <sys/wait.h>
#include <thread>

namespace kiln::jit {
namespace {

TEST(WorkerCompilerTest, AWorkerGivesTheSameBytesAsThisProcess) {
  const auto here = make_nvrtc_compiler();
  const auto workers = real_workers();
  ASSERT_TRUE(workers->id().ok());
  EXPECT_EQ(*workers->id(), *here->id());
  const CompileRequest request = lean_request("sm_90a");
  const auto mine = here->compile(request);
  const auto theirs = workers->compile(request);
  ASSERT_TRUE(mine.ok()) << mine.status();
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_EQ(theirs->image, mine->image);
  EXPECT_EQ(theirs->kernels, mine->kernels);
  EXPECT_EQ(theirs->kind, "cubin");
  EXPECT_EQ(workers->stats().in_process, 0);
}

TEST(WorkerCompilerTest, ThePoolIsAsWideAsTheWorkAndNoWiderThanAllowed) {
  const auto workers = real_workers(worker_options(3));
  EXPECT_EQ(workers->stats().started, 0);
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  ASSERT_TRUE(workers->compile(numbered_request(1)).ok());
  EXPECT_EQ(workers->stats().started, 1);  // the idle one took the second
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int i = 0; i < 12; ++i)
    threads.emplace_back([&, i] { failed += workers->compile(numbered_request(i)).ok() ? 0 : 1; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(workers->stats().started, 3);
  EXPECT_EQ(workers->stats().lost, 0);
}

TEST(WorkerCompilerTest, WorkersEndWhenIdleAndWithTheCompiler) {
  WorkerOptions options = worker_options(1);
  options.idle = std::chrono::milliseconds(200);
  auto workers = real_workers(options);
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  EXPECT_EQ(live_children().size(), 1u);
  EXPECT_TRUE(eventually([] { return live_children().empty(); }));
  EXPECT_TRUE(eventually([] {
    siginfo_t info;
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
  })) << "a worker was not reaped";
  const auto again = workers->compile(numbered_request(1));
  EXPECT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(workers->stats().started, 2);
  EXPECT_EQ(workers->stats().lost, 0);
  workers = nullptr;
  EXPECT_TRUE(live_children().empty());
}

TEST(WorkerCompilerTest, AWorkerThatEndedWhileIdleIsReplacedWithoutAnError) {
  const auto workers = real_workers(worker_options(1));
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  // As its own idle limit does: an orderly end.
  const auto children = live_children();
  ASSERT_EQ(children.size(), 1u);
  ASSERT_EQ(::kill(children[0], SIGKILL), 0);
  ASSERT_TRUE(eventually([] { return live_children().empty(); }));
  // Killed from outside before it had work: that compilation fails or not, the next one works.
  (void)workers->compile(numbered_request(1));
  const auto next = workers->compile(numbered_request(2));
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST(WorkerCompilerTest, AnErrorInTheSourceIsToldAndTheWorkerLivesOn) {
  const auto workers = real_workers(worker_options(1));
  CompileRequest broken = lean_request("sm_90");
  broken.source = "extern \"C\" __global__ void lean(float* p) { *p = nonsense; }\n";
  for (int i = 0; i < 2; ++i) {
    const auto result = workers->compile(broken);
    EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
    EXPECT_TRUE(is_compile_error(result.status()));
    EXPECT_TRUE(contains(result.status(), "nonsense")) << result.status();
  }
  EXPECT_TRUE(workers->compile(numbered_request(0)).ok());
  EXPECT_EQ(workers->stats().started, 1);
}

TEST(WorkerCompilerTest, ACommaLocaleAndSignalsChangeNothing) {
  const auto here = make_nvrtc_compiler()->compile(numbered_request(3));
  ASSERT_TRUE(here.ok());
  const CommaLocale commas;
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  const auto workers = real_workers(worker_options(1));
  absl::StatusOr<CompileResult> result;
  std::atomic<bool> done = false;
  std::thread caller([&] {
    result = workers->compile(numbered_request(3));
    done = true;
  });
  while (!done) {
    pthread_kill(caller.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  caller.join();
  sigaction(SIGUSR1, &before, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->image, here->image);
}

TEST(WorkerCompilerTest, AStrangePathAndADeletedCurrentFolderAreNoObstacle) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path() + "/a b 'c' \"d\" ünï;$x";
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(KILN_COMPILE_WORKER_FILE, folder + "/kiln-compile-worker");
  const CurrentFolder back;
  const std::string gone = scratch.path() + "/gone";
  std::filesystem::create_directory(gone);
  std::filesystem::current_path(gone);
  std::filesystem::remove(gone);
  WorkerOptions options = worker_options(1);
  options.worker = folder + "/kiln-compile-worker";
  const auto workers = real_workers(options);
  const auto result = workers->compile(numbered_request(4));
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(workers->stats().in_process, 0);
}

// A second thread would make the C library lock when it allocates, and NVRTC slower by some
// percent.
TEST(WorkerCompilerTest, AWorkerHasOneThread) {
  const auto workers = real_workers(worker_options(1));
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  const auto children = live_children();
  ASSERT_EQ(children.size(), 1u);
  const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(children[0]) + "/task");
#ifdef __SANITIZE_THREAD__
  constexpr int kThreads = 2;  // ThreadSanitizer may have one of its own
#else
  constexpr int kThreads = 1;
#endif
  EXPECT_LE(std::distance(begin(tasks), end(tasks)), kThreads);
}

TEST(WorkerCompilerTest, ALocaleWithCommasChangesNoByte) {
  CompileRequest request = lean_request("sm_90");
  request.source =
      "extern \"C\" __global__ void lean(float* p) { *p = HALF; }\n"
      "static_assert(HALF == 0.5 && 1.25f * 4 == 5);\n";
  const auto compile = [&request] {
    const absl::StatusOr<std::string> define = render_constant({"HALF", 0.5});
    EXPECT_TRUE(define.ok()) << define.status();
    request.defines = {define.ok() ? *define : ""};
    const auto workers = real_workers(worker_options(1));
    const auto result = workers->compile(request);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(workers->stats().in_process, 0);
    return result.ok() ? result->image : "";
  };
  const std::string before = compile();
  const GermanLocale german;
  char text[8];
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  ASSERT_STREQ(text, "0,5");
  EXPECT_TRUE(compile() == before);
}

TEST(WorkerCompilerTest, TheWorkerOfThisBuildIsFound) {
  std::error_code error;
  EXPECT_TRUE(std::filesystem::equivalent(find_compile_worker(""), KILN_COMPILE_WORKER_FILE, error))
      << error.message();
  EXPECT_EQ(find_compile_worker("/no/such/file"), "/no/such/file");
}

// After fork() the child gets a clear error, at once, and the parent's workers are left alone.
TEST(WorkerCompilerTest, AForkedChildGetsAClearErrorAndTheParentGoesOn) {
  auto workers = real_workers(worker_options(2));
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  // Forks while another thread is inside.
  std::thread busy([&] {
    for (int i = 1; !stop; ++i) failed += workers->compile(numbered_request(i)).ok() ? 0 : 1;
  });
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(17));
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      const auto result = workers->compile(numbered_request(1000));
      const bool clear = absl::IsFailedPrecondition(result.status()) &&
                         contains(result.status(), "was forked from");
      workers.reset();  // must neither hang nor end the parent's workers
      ::_exit(clear ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(workers->stats().lost, 0);
}

}  // namespace
}  // namespace kiln::jit
