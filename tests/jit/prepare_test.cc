// Compilers that get ready while the key of a build is still open.
#include "cache/store.h"
#include "jit/engine.h"
#include "jit/nvrtc_library.h"
#include "tests/jit/worker_test_util.h"

#include <gmock/gmock.h>

#include <atomic>

namespace kiln::jit {
namespace {

using testing::ExitedWithCode;
using testing::IsEmpty;
using testing::SizeIs;

SourceTable table() {
  static const CompileRequest request = lean_request("");
  return {{request.source_name, request.source},
          {request.headers[0].first, request.headers[0].second}};
}

Program lean_program(double factor = 1.5) {
  return {.source = "kernel_sources/test/lean.cu",
          .headers = {"test/scale.cuh"},
          .kernels = {"lean"},
          .constants = {{.name = "FACTOR", .value = factor}}};
}

// Sources, a store on disk and an engine.
struct Builder {
  Builder() { EXPECT_TRUE(sources.add(table()).ok()); }
  ScratchFolder folder;
  Sources sources;
  std::unique_ptr<cache::Store> store = cache::make_store({.disk_dir = folder.path()});
  Engine engine{sources, *store};
};

// Runs `check` in a process where nothing has run before: NVRTC is not open there.
template <class Check>
void in_fresh_process(Check check) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        check();
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
      },
      ExitedWithCode(0), "");
}

TEST(PrepareTest, OneWorkerIsStartedAndTakesTheFirstRequest) {
  const auto workers = real_workers(worker_options(2));
  workers->prepare();
  workers->prepare();
  EXPECT_THAT(live_children(), SizeIs(1));
  ASSERT_TRUE(workers->id().ok());
  EXPECT_EQ(*workers->id(), *make_nvrtc_compiler()->id());
  ASSERT_TRUE(workers->compile(numbered_request(0)).ok());
  EXPECT_THAT(live_children(), SizeIs(1));
  EXPECT_EQ(workers->stats().started, 1);
  EXPECT_EQ(workers->stats().in_process, 0);
}

TEST(PrepareTest, AWorkerThatGetsNoRequestEnds) {
  WorkerOptions options = worker_options(1);
  options.idle = std::chrono::milliseconds(200);
  const auto workers = real_workers(options);
  workers->prepare();
  EXPECT_TRUE(eventually([] { return live_children().empty(); }));
  const auto result = workers->compile(numbered_request(0));
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(workers->stats().in_process, 0);
}

TEST(PrepareTest, WhatCannotBeStartedIsToldWhenItIsWanted) {
  for (const char* how : {"exits", "garbage"}) {
    const ScratchFolder folder;
    Warnings warnings;
    WorkerOptions options = worker_options(1);
    options.worker = folder.path() + "/worker." + how;
    std::filesystem::create_symlink(KILN_ODD_WORKER, options.worker);
    const auto workers = real_workers(options);
    workers->prepare();
    EXPECT_TRUE(workers->compile(numbered_request(0)).ok());
    EXPECT_EQ(workers->stats().in_process, 1);
    EXPECT_EQ(workers->stats().started, 0);
    EXPECT_THAT(warnings.lines(), SizeIs(1)) << how;
    EXPECT_THAT(live_children(), IsEmpty()) << how;
  }
}

TEST(PrepareTest, AForkedChildStartsNone) {
  const auto workers = real_workers(worker_options(1));
  const pid_t child = ::fork();
  if (child == 0) {
    workers->prepare();
    ::_exit(live_children().empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(PrepareTest, AFirstBuildOpensNvrtcInItsWorkerAlone) {
  in_fresh_process([] {
    Builder builder;
    const auto workers = real_workers();
    const auto built = builder.engine.build(*workers, lean_program(), "sm_90");
    EXPECT_TRUE(built.ok()) << built.status();
    EXPECT_FALSE(is_nvrtc_open({}));
    EXPECT_EQ(workers->stats().in_process, 0);
    // Under the key that a process has which opens it.
    const auto here = make_nvrtc_compiler();
    const auto found = builder.engine.build(*here, lean_program(), "sm_90");
    EXPECT_TRUE(found.ok() && found->found_in == cache::TierKind::memory);
    EXPECT_TRUE(is_nvrtc_open({}));
  });
}

// The key must name who compiled, not who was going to.
TEST(PrepareTest, WhenTheWorkersNvrtcIsNotTheHostsEachArtifactHasTheKeyOfWhoCompiled) {
  in_fresh_process([] {
    Builder builder;
    WorkerOptions options = worker_options(1);
    options.worker = builder.folder.path() + "/worker.other";
    std::filesystem::create_symlink(KILN_ODD_WORKER, options.worker);
    const auto workers = real_workers(options);
    workers->prepare();
    const auto theirs = workers->id();
    EXPECT_TRUE(theirs.ok() && theirs->build == "1.0-other");
    std::filesystem::remove(options.worker);
    // The worker ends with its first request; no other can be started.
    EXPECT_FALSE(builder.engine.build(*workers, lean_program(), "sm_90").ok());
    const auto built = builder.engine.build(*workers, lean_program(), "sm_90");
    EXPECT_TRUE(built.ok()) << built.status();
    const auto ours = make_nvrtc_compiler()->id();
    EXPECT_TRUE(ours.ok() && *workers->id() == *ours);
    if (built.ok() && ours.ok()) {
      EXPECT_EQ(built->artifact->compiler_fields[1].value, ours->build);
    }
    EXPECT_EQ(builder.engine.stats().compilations, 2);  // the first one's result was not kept
    EXPECT_EQ(builder.store->stats().stored, 1);
  });
}

// The real compiler, which counts how often it was told to prepare.
class Counting final : public Compiler {
 public:
  absl::StatusOr<CompilerId> id() const override { return real_->id(); }
  absl::StatusOr<CompileResult> compile(const CompileRequest& request) const override {
    return real_->compile(request);
  }
  void prepare() const override { ++prepared; }
  mutable std::atomic<int> prepared = 0;

 private:
  std::unique_ptr<Compiler> real_ = make_nvrtc_compiler();
};

TEST(PrepareTest, OnlyABuildOfAnUnknownSourceThatMayCompilePrepares) {
  Builder builder;
  const Counting compiler;
  const auto build = [&](Engine& engine, Policy policy) {
    return engine.build(compiler, lean_program(), "sm_90", {.policy = policy}).ok();
  };
  EXPECT_FALSE(build(builder.engine, Policy::forbid));
  EXPECT_EQ(compiler.prepared, 0);
  EXPECT_TRUE(build(builder.engine, Policy::block));
  EXPECT_EQ(compiler.prepared, 1);
  EXPECT_TRUE(build(builder.engine, Policy::block));  // in memory
  const auto next = cache::make_store({.disk_dir = builder.folder.path()});
  Engine later(builder.sources, *next);
  EXPECT_TRUE(build(later, Policy::block));  // on disk
  EXPECT_EQ(compiler.prepared, 1);
}

}  // namespace
}  // namespace kiln::jit
