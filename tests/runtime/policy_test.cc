// What a call does when its kernel is not built: wait, wait for so long, be served by another, or
// fail.
#include "tests/support/status_matchers.h"
#include "tests/support/toy_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using enum absl::StatusCode;
using std::chrono::milliseconds;

// Opens once; builds of SlowKernel wait for it.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
};
Gate gate;
std::atomic<int> slow_builds{0}, failures_left{0}, at_the_gate{0};

class QuickKernel : public ToyKernel {
 public:
  static Entry<QuickKernel> entry_for(const ToyCall& call) {
    return Entry<QuickKernel>(call.dtype);
  }
  explicit QuickKernel(DType) : ToyKernel(1) {}
};
class SlowKernel : public ToyKernel {
 public:
  static constexpr auto preferred_over = keys("quick", "second");
  static Entry<SlowKernel> entry_for(const ToyCall& call) { return Entry<SlowKernel>(call.dtype); }
  explicit SlowKernel(DType) : ToyKernel(2) {
    ++at_the_gate;
    gate.pass();
    ++slow_builds;
    if (failures_left-- > 0) throw std::runtime_error("not today");
  }
};
class SecondKernel : public ToyKernel {
 public:
  static Entry<SecondKernel> entry_for(const ToyCall& call) {
    return Entry<SecondKernel>(call.dtype);
  }
  explicit SecondKernel(DType) : ToyKernel(3) {}
};

class PolicyTest : public ::testing::Test {
 protected:
  PolicyTest() {
    gate.open();
    slow_builds = 0;
    at_the_gate = 0;
    failures_left = 0;
  }
  ~PolicyTest() override { gate.open(); }

  // What is added to x by whatever serves a call; negative: an error, in `status`.
  float served(ToyFwdOp& op) {
    float x[4] = {10, 10, 10, 10}, y[4] = {};
    const Device device = toy_stream().device;
    status = op.forward(toy_stream(), Tensor::contiguous(x, device, DType::float32, {4}),
                        Tensor::contiguous(y, device, DType::float32, {4}));
    return status.ok() ? y[0] - 10 : -1;
  }
  std::unique_ptr<ToyFwdOp> make(ToyRuntime& toy, OpOptions options) {
    auto op = toy.op(options);
    EXPECT_THAT(op, is_ok());
    return *std::move(op);
  }
  // An op whose quick kernel is built and whose slow one is registered, and waits at the gate.
  std::unique_ptr<ToyFwdOp> with_quick_built(ToyRuntime& toy, OpOptions options) {
    EXPECT_THAT(toy.add<QuickKernel>("quick"), is_ok());
    EXPECT_THAT(toy.add<SlowKernel>("slow"), is_ok());
    auto op = make(toy, options);
    gate.close();
    return op;
  }
  CallArgs args() {
    CallArgs args;
    args.inputs = {contiguous_arg({toy_stream().device, DType::float32, {4}}), std::nullopt};
    args.outputs = {contiguous_arg({toy_stream().device, DType::float32, {4}})};
    return args;
  }
  template <class Condition>
  bool eventually(Condition condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(5));
    return condition();
  }
  absl::Status status;
};

// Serves the lengths up to 8 only, so that longer calls build the quick kernel first.
class ShortSlowKernel final : public SlowKernel {
 public:
  static Refusal refusal(const ToyCall& call) {
    if (call.n > 8) return refuse("serves lengths of at most 8, got ", call.n);
    return serves;
  }
  static Entry<ShortSlowKernel> entry_for(const ToyCall& call) {
    return Entry<ShortSlowKernel>(call.dtype);
  }
  using SlowKernel::SlowKernel;
};

void build_for_long_calls(ToyFwdOp& op) {
  std::vector<float> x(64), y(64);
  const Device device = toy_stream().device;
  ASSERT_THAT(op.forward(toy_stream(), Tensor::contiguous(x.data(), device, DType::float32, {64}),
                         Tensor::contiguous(y.data(), device, DType::float32, {64})),
              is_ok());
}

TEST_F(PolicyTest, AsyncIsServedByWhatIsBuiltUntilThePreferredOneIs) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<QuickKernel>("quick"), is_ok());
  ASSERT_THAT(toy.add<ShortSlowKernel>("slow"), is_ok());
  auto op = make(toy, {.policy = CompilePolicy::async});
  gate.close();
  build_for_long_calls(*op);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(served(*op), 1) << status;
  EXPECT_EQ(toy.runtime.stats().stand_ins, 5) << "a stand-in was remembered as the call's answer";
  gate.open();
  EXPECT_TRUE(eventually([&] { return served(*op) == 2; })) << status;
  const auto stand_ins = toy.runtime.stats().stand_ins;
  EXPECT_EQ(served(*op), 2);
  EXPECT_EQ(toy.runtime.stats().stand_ins, stand_ins);
  EXPECT_EQ(slow_builds, 1);
}

TEST_F(PolicyTest, AsyncWaitsWhereNothingElseIsBuilt) {
  ToyRuntime toy;
  auto op = with_quick_built(toy, {.policy = CompilePolicy::async});
  std::thread opener([] {
    std::this_thread::sleep_for(milliseconds(50));
    gate.open();
  });
  EXPECT_EQ(served(*op), 2) << status;
  opener.join();
  EXPECT_EQ(toy.runtime.stats().stand_ins, 0);
}

// Two that do not know of each other: each alone for one length, both for the others.
class FirstOfTwo final : public QuickKernel {
 public:
  static Refusal refusal(const ToyCall& call) { return call.n == 65 ? refuse("not 65") : serves; }
  static Entry<FirstOfTwo> entry_for(const ToyCall& call) { return Entry<FirstOfTwo>(call.dtype); }
  using QuickKernel::QuickKernel;
};
class SecondOfTwo final : public SecondKernel {
 public:
  static Refusal refusal(const ToyCall& call) { return call.n == 64 ? refuse("not 64") : serves; }
  static Entry<SecondOfTwo> entry_for(const ToyCall& call) {
    return Entry<SecondOfTwo>(call.dtype);
  }
  using SecondKernel::SecondKernel;
};

TEST_F(PolicyTest, AsyncWaitsWhereTheStandInsAreAmbiguous) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<FirstOfTwo>("quick"), is_ok());
  ASSERT_THAT(toy.add<SecondOfTwo>("second"), is_ok());
  ASSERT_THAT(toy.add<ShortSlowKernel>("slow"), is_ok());
  auto op = make(toy, {.policy = CompilePolicy::async});
  for (const std::int64_t n : {64, 65}) {
    EXPECT_THAT(op->kernel_for<ToyFwdInterface>(ToyCall{.n = n, .where = {toy_stream().device}}),
                is_ok());
  }
  EXPECT_EQ(served(*op), 2) << status;
  EXPECT_EQ(toy.runtime.stats().stand_ins, 0);
}

TEST_F(PolicyTest, AFailedBuildBehindACallIsTriedAgain) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<QuickKernel>("quick"), is_ok());
  ASSERT_THAT(toy.add<ShortSlowKernel>("slow"), is_ok());
  auto op = make(toy, {.policy = CompilePolicy::async});
  build_for_long_calls(*op);
  failures_left = 2;
  EXPECT_TRUE(eventually([&] { return served(*op) == 2; })) << status;
  EXPECT_EQ(slow_builds, 3);
}

TEST_F(PolicyTest, ACapturingCallIsServedByAStandInAndBuildsNothing) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<QuickKernel>("quick"), is_ok());
  ASSERT_THAT(toy.add<ShortSlowKernel>("slow"), is_ok());
  auto op = make(toy, {.policy = CompilePolicy::async});
  build_for_long_calls(*op);
  toy.support->capturing = true;
  EXPECT_EQ(served(*op), 1) << status;
  EXPECT_EQ(slow_builds, 0);
  auto blocking = make(toy, {});
  EXPECT_EQ(served(*blocking), -1);
  EXPECT_THAT(status, status_is(kFailedPrecondition, HasSubstr("is being captured")));
}

TEST_F(PolicyTest, ADeadlineEndsTheWaitAndNotTheBuild) {
  ToyRuntime toy;
  auto op = with_quick_built(toy, {.compile_deadline_seconds = 0.05});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(served(*op), -1);
  EXPECT_THAT(status,
              status_is(kDeadlineExceeded, HasSubstr("within the compile deadline of 50ms")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  gate.open();
  EXPECT_TRUE(eventually([&] { return served(*op) == 2; })) << status;
  EXPECT_EQ(slow_builds, 1);
}

TEST_F(PolicyTest, WhatWasPrefetchedIsThere) {
  ToyRuntime toy;
  auto op = with_quick_built(toy, {});
  auto future = op->prefetch(args(), toy_stream().device);
  EXPECT_EQ(future.wait_for(milliseconds(20)), std::future_status::timeout);
  gate.open();
  EXPECT_THAT(future.get(), is_ok());
  EXPECT_EQ(slow_builds, 1);
  EXPECT_EQ(served(*op), 2) << status;
  EXPECT_EQ(slow_builds, 1);
}

TEST_F(PolicyTest, PrefetchTellsWhatWentWrong) {
  ToyRuntime toy;
  auto op = with_quick_built(toy, {});
  gate.open();
  failures_left = 1;
  EXPECT_THAT(op->prefetch(args(), toy_stream().device).get(),
              status_is(kInternal, HasSubstr("not today")));
  CallArgs wrong = args();
  wrong.inputs.clear();
  EXPECT_THAT(op->prefetch(wrong, toy_stream().device).get(), status_is(kInvalidArgument));
  EXPECT_THAT(op->prefetch(args(), Device{DeviceType::cpu(), 9}).get(), status_is(kNotFound));
}

// One thread for builds, many waiters of every kind: none waits for a build that waits for a
// thread.
TEST_F(PolicyTest, WaitersAndPrefetchesDoNotWaitForEachOther) {
  ToyRuntime toy({.jobs = 1});
  auto op = with_quick_built(toy, {});
  std::vector<std::shared_future<absl::Status>> futures;
  for (int i = 0; i < 8; ++i) futures.push_back(op->prefetch(args(), toy_stream(i % 2).device));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  const ToyCall call{.n = 4, .where = {toy_stream().device}};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { right += op->kernel_for<ToyFwdInterface>(call).ok() ? 1 : 0; });
  gate.open();
  for (std::thread& thread : threads) thread.join();
  for (const auto& future : futures) EXPECT_THAT(future.get(), is_ok());
  EXPECT_EQ(right, 8);
}

TEST_F(PolicyTest, AnOpThatIsDestroyedWaitsForItsBuildsOnly) {
  ToyRuntime toy({.jobs = 1});
  std::vector<std::shared_future<absl::Status>> futures;
  {
    auto op = with_quick_built(toy, {});
    futures.push_back(op->prefetch(args(), toy_stream(0).device));
    for (int i = 0; i < 4; ++i) futures.push_back(op->prefetch(args(), toy_stream(1).device));
    EXPECT_TRUE(eventually([] { return at_the_gate == 1; }));
    std::thread opener([] {
      std::this_thread::sleep_for(milliseconds(50));
      gate.open();
    });
    op = nullptr;
    opener.join();
  }
  for (std::size_t i = 1; i < futures.size(); ++i)
    EXPECT_THAT(futures[i].get(), status_is(kCancelled));
  EXPECT_EQ(slow_builds, 1);
}

// After fork() a hit works, a miss is a clear error, and nothing hangs; not even while another
// thread of the parent is in the middle of a build.
TEST_F(PolicyTest, AForkedChildServesHitsAndRefusesMisses) {
  ToyRuntime toy;
  auto op = with_quick_built(toy, {});
  gate.open();
  ASSERT_EQ(served(*op), 2);
  auto other = make(toy, {});
  gate.close();
  auto building = other->prefetch(args(), toy_stream().device);
  std::this_thread::sleep_for(milliseconds(30));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    if (served(*op) != 2) ::_exit(1);
    if (served(*other) != -1 || !absl::IsFailedPrecondition(status)) ::_exit(2);
    if (status.ToString().find("was forked from") == std::string::npos) ::_exit(3);
    if (!absl::IsFailedPrecondition(other->prefetch(args(), toy_stream().device).get())) ::_exit(4);
    other.reset();
    ::_exit(0);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  EXPECT_TRUE(WIFEXITED(ended)) << ended;
  EXPECT_EQ(WEXITSTATUS(ended), 0);
  gate.open();
  EXPECT_THAT(building.get(), is_ok());
}

}  // namespace
}  // namespace kiln::testing
