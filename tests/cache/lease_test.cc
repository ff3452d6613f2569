#include "base/hash128.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/child.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <errno.h>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <utime.h>
#include <vector>

namespace kiln::cache {
namespace {

using testing::Child;
using testing::files_below;
using ::testing::HasSubstr;
using testing::is_ok;
using testing::make_artifact;
using testing::status_is;

class LeaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open(absl::Duration lease_wait) {
    return make_store(
        {.disk_dir = dir_.path(), .lease_wait = lease_wait, .heartbeat = absl::Milliseconds(50)});
  }
  Child holder() {
    Child child({KILN_TEST_HELPER, "hold", dir_.path(), "1"});
    EXPECT_EQ(child.read_line(), "held");
    return child;
  }
  // Where a holder that was killed has left its lease, and what stands in it.
  std::pair<std::string, std::string> dead_lease() {
    Child child = holder();
    const std::string path = files_below(dir_.path()).at(0);
    std::string text = testing::read_file(path);
    child.send(SIGKILL);
    return {path, std::move(text)};
  }
  static absl::Time in(absl::Duration time) { return absl::Now() + time; }

  testing::TempDir dir_;
  const CompileKey key_ = make_artifact(1).key;
};

TEST_F(LeaseTest, ReleasedByTheDestructorAndByAssignment) {
  const auto store = open(absl::Seconds(60));
  {
    const auto lease = store->lease(key_, in(absl::Seconds(5)));
    ASSERT_THAT(lease, is_ok());
    EXPECT_EQ(files_below(dir_.path()).size(), 1u);
  }
  EXPECT_TRUE(files_below(dir_.path()).empty());
  Lease lease = *store->lease(key_, in(absl::Seconds(5)));
  lease = Lease();
  EXPECT_TRUE(files_below(dir_.path()).empty());
}

// Guards: a child that waits for a thread that only its parent has.
TEST_F(LeaseTest, AForkedChildCanEndAndLeavesItsParentsLease) {
  auto store = open(absl::Seconds(60));
  auto lease = store->lease(key_, in(absl::Seconds(5)));
  ASSERT_THAT(lease, is_ok());
  const pid_t pid = ::fork();
  if (pid == 0) {
    *lease = Lease();
    store.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files_below(dir_.path()).size(), 1u);
}

TEST_F(LeaseTest, ALeaseMayOutliveItsStore) {
  std::optional<Lease> lease = *open(absl::Seconds(60))->lease(key_, in(absl::Seconds(5)));
  lease.reset();
  EXPECT_TRUE(files_below(dir_.path()).empty());
}

TEST_F(LeaseTest, OtherKeysAreNotWaitedFor) {
  const auto store = open(absl::Seconds(60));
  const auto a = store->lease(key_, absl::Now());
  const auto b = store->lease(make_artifact(2).key, absl::Now());
  EXPECT_THAT(a, is_ok());
  EXPECT_THAT(b, is_ok());
  EXPECT_EQ(store->stats().lease_waits, 0);
}

// Guards: a fixed time-out shorter than a slow compile. A holder that beats is waited for beyond
// lease_wait.
TEST_F(LeaseTest, ALivingHolderIsWaitedForUntilTheDeadline) {
  Child child = holder();
  const auto store = open(absl::Milliseconds(400));
  EXPECT_THAT(
      store->lease(key_, in(absl::Milliseconds(1500))),
      status_is(absl::StatusCode::kDeadlineExceeded, HasSubstr(std::to_string(child.pid()))));
  EXPECT_EQ(store->stats().lease_waits, 1);
}

// Guards: hang on a lock whose holder was killed.
TEST_F(LeaseTest, AKilledHolderIsSucceededAtOnce) {
  Child child = holder();
  child.send(SIGKILL);
  const auto store = open(absl::Seconds(60));
  EXPECT_THAT(store->lease(key_, in(absl::Seconds(20))), is_ok());
}

// Guards: hang on a lock whose holder was stopped.
TEST_F(LeaseTest, AStoppedHolderDelaysByLeaseWaitAndHarmsNobodyWhenItGoesOn) {
  Child child = holder();
  child.send(SIGSTOP);
  const auto store = open(absl::Milliseconds(300));
  const absl::Time start = absl::Now();
  const auto lease = store->lease(key_, in(absl::Seconds(20)));
  ASSERT_THAT(lease, is_ok());
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(250));
  child.send(SIGCONT);
  absl::SleepFor(absl::Milliseconds(200));
  child.send(SIGKILL);
  child.wait();
  EXPECT_EQ(files_below(dir_.path()).size(), 1u) << "the successor's lease stands";
  EXPECT_THAT(open(absl::Seconds(60))->lease(key_, in(absl::Milliseconds(200))),
              status_is(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(LeaseTest, AnUnreadableLeaseIsOutwaitedAndAnOldOneTakenAtOnce) {
  { const auto made = open(absl::Seconds(60))->lease(key_, in(absl::Seconds(5))); }
  const std::string path = dir_ / ("leases/" + to_hex(key_) + ".lease");
  for (const std::string& text :
       {std::string(), std::string("garbage\n"), std::string("kiln-lease 1\nh\nx\ny\nz\n")}) {
    testing::write_file(path, text);
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    EXPECT_THAT(open(absl::Milliseconds(100))->lease(key_, in(absl::Seconds(20))), is_ok());
  }
  testing::write_file(path, "kiln-lease 1\nanother host\n1\n1\nn\n");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const ::utimbuf long_ago{1000000000, 1000000000};
  ASSERT_EQ(::utime(path.c_str(), &long_ago), 0);
  EXPECT_THAT(open(absl::Seconds(60))->lease(key_, in(absl::Seconds(5))), is_ok());
}

TEST_F(LeaseTest, OfManyWaitersOnADeadHolderOneAtATimeHolds) {
  const auto [path, text] = dead_lease();
  const auto store = open(absl::Seconds(60));
  for (int round = 0; round < 20; ++round) {
    testing::write_file(path, text);
    std::atomic<int> inside{0}, most{0}, served{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto lease = store->lease(key_, in(absl::Seconds(60)));
        ASSERT_THAT(lease, is_ok());
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        absl::SleepFor(absl::Milliseconds(1));
        --inside;
        ++served;
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(served, 8);
    ASSERT_EQ(most, 1);
    EXPECT_TRUE(files_below(dir_.path()).empty());
  }
}

TEST_F(LeaseTest, AClaimWhoseMakerDiedHoldsNobodyUp) {
  const auto [path, text] = dead_lease();
  testing::write_file(path + "." + to_hex(hash128(text)), text);
  EXPECT_THAT(open(absl::Seconds(60))->lease(key_, in(absl::Seconds(60))), is_ok());
  EXPECT_TRUE(files_below(dir_.path()).empty());
}

TEST_F(LeaseTest, WaitersAreLetGoWhenTheArtifactIsThere) {
  Child child = holder();
  const auto store = open(absl::Seconds(60));
  std::thread builder([&] {
    absl::SleepFor(absl::Milliseconds(100));
    EXPECT_THAT(open(absl::Seconds(60))->put(testing::share(make_artifact(1))), is_ok());
  });
  EXPECT_THAT(store->lease(key_, in(absl::Seconds(30))), is_ok());
  builder.join();
  EXPECT_TRUE((*store->find(make_artifact(1))).has_value());
}

TEST_F(LeaseTest, WhereNoLeaseCanBeMadeNobodyWaits) {
  for (const int error : {EROFS, ENOSPC, EACCES}) {
    testing::FaultyFileSystem fs;
    const auto store = make_store({.disk_dir = dir_.path()}, fs);
    fs.fail_writes(error);
    const auto a = store->lease(key_, absl::InfiniteFuture());
    const auto b = store->lease(key_, absl::InfiniteFuture());
    EXPECT_THAT(a, is_ok());
    EXPECT_THAT(b, is_ok());
    EXPECT_EQ(store->stats().errors, 2);
  }
}

TEST_F(LeaseTest, TheHeartbeatStopsAndStartsWithTheLeases) {
  const auto store = open(absl::Seconds(60));
  for (int i = 0; i < 50; ++i) {
    const auto a = store->lease(make_artifact(i).key, in(absl::Seconds(5)));
    const auto b = store->lease(make_artifact(i + 1000).key, in(absl::Seconds(5)));
    ASSERT_THAT(a, is_ok());
    ASSERT_THAT(b, is_ok());
    if (i % 10 == 0) absl::SleepFor(absl::Milliseconds(60));
  }
  EXPECT_TRUE(files_below(dir_.path()).empty());
}

}  // namespace
}  // namespace kiln::cache
