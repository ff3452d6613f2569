#include "jit/engine.h"

#include <kiln/host_compiler.h>

#include "jit/nvrtc_compiler.h"
#include "tests/jit/jit_test_util.h"

#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace kiln::jit {
namespace {

SourceTable table() {
  static const CompileRequest request = lean_request("");
  return {{request.source_name, request.source},
          {request.headers[0].first, request.headers[0].second},
          {"kernel_sources/test/broken.cu", "int broken( {\n"}};
}

Program lean_program() {
  return {.source = "kernel_sources/test/lean.cu",
          .headers = {"test/scale.cuh"},
          .kernels = {"lean"},
          .constants = {{.name = "FACTOR", .value = 1.5}}};
}

// The real compiler, which waits for `gate` before it begins: tests decide how long a build takes.
class GatedCompiler final : public Compiler {
 public:
  explicit GatedCompiler(absl::Notification& gate) : gate_(gate) {}
  absl::StatusOr<CompilerId> id() const override { return real_->id(); }
  absl::StatusOr<CompileResult> compile(const CompileRequest& request) const override {
    started.store(true);
    gate_.WaitForNotification();
    return real_->compile(request);
  }
  mutable std::atomic<bool> started = false;

 private:
  absl::Notification& gate_;
  std::unique_ptr<Compiler> real_ = make_nvrtc_compiler();
};

class EngineTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sources_.add(table()).ok()); }

  ScratchFolder folder_;
  Sources sources_;
  std::unique_ptr<cache::Store> store_ = cache::make_store({.disk_dir = folder_.path()});
  Engine engine_{sources_, *store_};
  std::unique_ptr<Compiler> nvrtc_ = make_nvrtc_compiler();
};

TEST_F(EngineTest, BuildsOnceThenFinds) {
  const auto first = engine_.build(*nvrtc_, lean_program(), "sm_90");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->found_in.has_value());
  const auto second = engine_.build(*nvrtc_, lean_program(), "sm_90");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->found_in, cache::TierKind::memory);
  EXPECT_EQ(first->kernels, second->kernels);
  EXPECT_TRUE(first->artifact->image == second->artifact->image);
  EXPECT_EQ(engine_.stats().compilations, 1);
}

TEST_F(EngineTest, ASecondStoreFindsItOnDisk) {
  ASSERT_TRUE(engine_.build(*nvrtc_, lean_program(), "sm_90").ok());
  const auto store = cache::make_store({.disk_dir = folder_.path()});
  Engine engine(sources_, *store);
  const auto built = engine.build(*nvrtc_, lean_program(), "sm_90", {.policy = Policy::forbid});
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->found_in, cache::TierKind::disk);
  EXPECT_GT(built->kernels.at(0).registers, 0);
  EXPECT_EQ(engine.stats().compilations, 0);
}

TEST_F(EngineTest, SixteenThreadsCompileOnce) {
  std::vector<absl::StatusOr<Built>> results(16, absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] { result = engine_.build(*nvrtc_, lean_program(), "sm_90a"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->artifact->image == results[0]->artifact->image);
  }
  EXPECT_EQ(engine_.stats().compilations, 1);
}

TEST_F(EngineTest, DifferentKeysDoNotWaitForEachOther) {
  absl::Notification gate;
  const GatedCompiler slow(gate);
  std::thread holder([&] { EXPECT_TRUE(engine_.build(slow, lean_program(), "sm_90").ok()); });
  while (!slow.started.load()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(engine_.build(*nvrtc_, lean_program(), "sm_80").ok());
  gate.Notify();
  holder.join();
}

TEST_F(EngineTest, AWaiterKeepsToItsOwnDeadline) {
  absl::Notification gate;
  const GatedCompiler slow(gate);
  std::thread holder([&] { EXPECT_TRUE(engine_.build(slow, lean_program(), "sm_90").ok()); });
  while (!slow.started.load()) absl::SleepFor(absl::Milliseconds(1));
  const absl::Time start = absl::Now();
  const auto late =
      engine_.build(slow, lean_program(), "sm_90", {.deadline = start + absl::Milliseconds(100)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(100));
  gate.Notify();
  holder.join();
  EXPECT_EQ(engine_.stats().waits, 1);
  EXPECT_EQ(engine_.stats().compilations, 1);
}

TEST_F(EngineTest, ADeadlineThatHasPassedCompilesNothing) {
  const auto late =
      engine_.build(*nvrtc_, lean_program(), "sm_90", {.deadline = absl::InfinitePast()});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  EXPECT_EQ(engine_.stats().compilations, 0);
  EXPECT_TRUE(engine_.build(*nvrtc_, lean_program(), "sm_90").ok());
}

TEST_F(EngineTest, AFailureIsToldToAllWhoWaitedAndThenForgotten) {
  const ScratchFolder edits;
  Sources sources(edits.path());
  ASSERT_TRUE(sources.add(table()).ok());
  Engine engine(sources, *store_);
  const Program program{.source = "kernel_sources/test/broken.cu", .kernels = {"k"}};
  absl::Notification gate;
  const GatedCompiler slow(gate);
  std::vector<absl::Status> statuses(4);
  std::vector<std::thread> threads;
  for (auto& status : statuses) {
    threads.emplace_back([&] { status = engine.build(slow, program, "sm_90").status(); });
  }
  while (engine.stats().waits < 3) absl::SleepFor(absl::Milliseconds(1));
  gate.Notify();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_TRUE(is_compile_error(status)) << status;
  EXPECT_EQ(engine.stats().failures, 1);
  EXPECT_TRUE(is_compile_error(engine.build(slow, program, "sm_90").status()));
  EXPECT_EQ(engine.stats().failures, 2);  // tried again, not remembered
  std::filesystem::create_directories(edits.path() + "/kernel_sources/test");
  std::ofstream(edits.path() + "/" + program.source) << "extern \"C\" __global__ void k() {}\n";
  EXPECT_TRUE(engine.build(slow, program, "sm_90").ok());
}

TEST_F(EngineTest, AnEditOfAHeaderIsNeverAStaleHit) {
  const ScratchFolder edits;
  Sources sources(edits.path());
  ASSERT_TRUE(sources.add(table()).ok());
  Engine engine(sources, *store_);
  const auto before = engine.build(*nvrtc_, lean_program(), "sm_90");
  ASSERT_TRUE(before.ok()) << before.status();
  std::filesystem::create_directory(edits.path() + "/test");
  std::ofstream(edits.path() + "/test/scale.cuh")
      << "__device__ inline float scale(float x) { return x + 7; }\n";
  const auto after = engine.build(*nvrtc_, lean_program(), "sm_90");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_FALSE(after->found_in.has_value());
  EXPECT_FALSE(before->artifact->image == after->artifact->image);
}

TEST_F(EngineTest, ACompileErrorSaysWhatWhyAndHowToRepeatIt) {
  Program program{.source = "kernel_sources/test/broken.cu",
                  .headers = {"test/scale.cuh"},
                  .kernels = {"k"},
                  .constants = {{.name = "N", .value = std::int64_t{4}},
                                {.name = "T", .value = DType::float16}}};
  const absl::Status status = engine_.build(*nvrtc_, program, "sm_90a").status();
  EXPECT_TRUE(is_compile_error(status));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  for (const char* part :
       {"build of kernel_sources/test/broken.cu for sm_90a", "broken.cu(1): error",
        "defines: N=4 T=kiln::float16",
        "reproduce: kiln compile kernel_sources/test/broken.cu --target sm_90a --header "
        "test/scale.cuh --define N=4 --define T=kiln::float16 --kernel k"}) {
    EXPECT_THAT(message_of(status), testing::HasSubstr(part));
  }
}

TEST_F(EngineTest, AHugeLogIsCut) {
  Program program = lean_program();
  program.source = "kernel_sources/test/noisy.cu";
  std::string noisy;
  for (int i = 0; i < 90; ++i)
    noisy += "int x" + std::to_string(i) + " = undefined_" + std::string(2000, 'a') + ";\n";
  ASSERT_TRUE(sources_.add({{program.source, noisy}}).ok());
  const absl::Status status = engine_.build(*nvrtc_, program, "sm_90").status();
  EXPECT_TRUE(is_compile_error(status));
  EXPECT_LT(message_of(status).size(), 20000u);
  EXPECT_THAT(message_of(status), testing::HasSubstr("bytes more)"));
}

TEST_F(EngineTest, ForbidCompilesNothingAndNamesTheKey) {
  const absl::Status status =
      engine_.build(*nvrtc_, lean_program(), "sm_90", {.policy = Policy::forbid}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  const auto request = engine_.request_for(lean_program(), "sm_90");
  const std::string key = to_hex(engine_.describe(*request, *nvrtc_->id()).key);
  EXPECT_THAT(message_of(status), testing::HasSubstr(key));
  EXPECT_THAT(message_of(status), testing::HasSubstr("kiln warm"));
  EXPECT_EQ(engine_.stats().compilations, 0);
}

TEST_F(EngineTest, AMissingCompilerIsAPreconditionAndNotASourceError) {
  const auto missing = make_nvrtc_compiler({.library = "/nonexistent/libnvrtc.so"});
  const absl::Status status = engine_.build(*missing, lean_program(), "sm_90").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_FALSE(is_compile_error(status));
}

TEST_F(EngineTest, ACompilerThatThrowsFailsItsBuildAlone) {
  class Throwing final : public Compiler {
   public:
    absl::StatusOr<CompilerId> id() const override { return CompilerId{.name = "throws"}; }
    absl::StatusOr<CompileResult> compile(const CompileRequest&) const override {
      throw std::runtime_error("boom");
    }
  };
  const Throwing throwing;
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = engine_.build(throwing, lean_program(), "sm_90").status();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(message_of(status), testing::HasSubstr("boom"));
  }
  EXPECT_TRUE(engine_.build(*nvrtc_, lean_program(), "sm_90").ok());
}

TEST_F(EngineTest, HostProgramsGoTheSameWay) {
  const CompileRequest request = host_request();
  ASSERT_TRUE(sources_
                  .add({{request.source_name, request.source},
                        {request.headers[0].first, request.headers[0].second}})
                  .ok());
  const Program program{.source = request.source_name,
                        .headers = {request.headers[0].first},
                        .kernels = request.kernels,
                        .constants = {{.name = "STEP", .value = std::int64_t{3}}}};
  const auto host = make_host_compiler();
  const auto built = engine_.build(*host, program, "x86-64-v2");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->artifact->kind, "host_object");
  EXPECT_EQ(engine_.build(*host, program, "x86-64-v2")->found_in, cache::TierKind::memory);
}

TEST_F(EngineTest, WhatWasPrefetchedIsFound) {
  auto good = engine_.prefetch(*nvrtc_, lean_program(), "sm_90");
  auto broken = engine_.prefetch(*nvrtc_, {.source = "kernel_sources/test/broken.cu"}, "sm_90");
  ASSERT_TRUE(good.get().ok()) << good.get().status();
  EXPECT_TRUE(is_compile_error(broken.get().status())) << broken.get().status();
  const auto found = engine_.build(*nvrtc_, lean_program(), "sm_90");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->found_in, cache::TierKind::memory);
  EXPECT_EQ(engine_.stats().compilations, 1);
}

}  // namespace
}  // namespace kiln::jit
