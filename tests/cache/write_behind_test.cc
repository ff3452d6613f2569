#include "base/log.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/child.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <errno.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::cache {
namespace {

using testing::files_below;
using testing::is_ok;
using testing::make_artifact;
using testing::share;

class WriteBehindTest : public ::testing::Test {
 protected:
  StoreOptions options() const {
    return {.disk_dir = dir_.path(),
            .max_memory_bytes = 10,
            .write_behind = true,
            .heartbeat = absl::Milliseconds(50)};
  }
  testing::TempDir dir_;
};

TEST_F(WriteBehindTest, FlushAndTheDestructorLeaveEverythingOnTheDisk) {
  {
    const auto store = make_store(options());
    for (int i = 0; i < 20; ++i) ASSERT_THAT(store->put(share(make_artifact(i, 5000))), is_ok());
    EXPECT_TRUE(store->flush(absl::Seconds(60)));
    EXPECT_EQ(files_below(dir_.path()).size(), 20u);
    for (int i = 20; i < 400; ++i) ASSERT_THAT(store->put(share(make_artifact(i))), is_ok());
    EXPECT_TRUE(store->flush(absl::Seconds(300)));
    EXPECT_EQ(files_below(dir_.path()).size(), 400u) << "more than the queue holds, too";
    for (int i = 400; i < 405; ++i) ASSERT_THAT(store->put(share(make_artifact(i))), is_ok());
  }
  EXPECT_EQ(files_below(dir_.path()).size(), 405u);
}

TEST_F(WriteBehindTest, WhatWaitsIsFoundAndItsLeaseIsKept) {
  testing::FaultyFileSystem fs;
  std::atomic<int> syncs{0};
  fs.set_rule([&](const testing::FileCall& call) {
    if (call.name == "sync") {
      ++syncs;
      absl::SleepFor(absl::Seconds(1));
    }
    return 0;
  });
  const auto store = make_store(options(), fs);
  const Artifact artifact = make_artifact(1, 5000);
  absl::Time released;
  {
    const auto lease = store->lease(artifact.key, absl::InfiniteFuture());
    ASSERT_THAT(lease, is_ok());
    ASSERT_THAT(store->put(share(artifact)), is_ok());
    ASSERT_THAT(store->put(share(make_artifact(2))), is_ok()) << "drops the first from memory";
    const auto found = *store->find(artifact);
    ASSERT_TRUE(found) << "in the queue, on the disk, or both";
    released = absl::Now();
  }
  EXPECT_LT(absl::Now() - released, absl::Milliseconds(800)) << "letting go waits for nothing";
  // Whoever gets the lease now finds the artifact.
  const auto other = make_store({.disk_dir = dir_.path()});
  const auto lease = other->lease(artifact.key, absl::InfiniteFuture());
  EXPECT_TRUE((*other->find(artifact)).has_value());
  EXPECT_TRUE(store->flush(absl::Seconds(60)));
  EXPECT_EQ(syncs, 2);
}

TEST_F(WriteBehindTest, ALeaseWithoutAPutIsReleasedAtOnce) {
  const auto store = make_store(options());
  { const auto lease = store->lease(make_artifact(1).key, absl::InfiniteFuture()); }
  EXPECT_TRUE(files_below(dir_.path()).empty());
}

TEST_F(WriteBehindTest, ADiskInTroubleIsCountedAndTheNextWriteGoesOn) {
  set_log_sink([](LogLevel, std::string_view) {});
  testing::FaultyFileSystem fs;
  const auto store = make_store(options(), fs);
  fs.fail_writes(ENOSPC);
  ASSERT_THAT(store->put(share(make_artifact(1))), is_ok());
  EXPECT_TRUE(store->flush(absl::Seconds(60)));
  EXPECT_EQ(store->stats().errors, 1);
  fs.heal();
  ASSERT_THAT(store->put(share(make_artifact(2))), is_ok());
  EXPECT_TRUE(store->flush(absl::Seconds(60)));
  EXPECT_EQ(files_below(dir_.path()).size(), 1u);
  set_log_sink({});
}

TEST_F(WriteBehindTest, AStrictStoreStillSaysWhatWentWrong) {
  set_log_sink([](LogLevel, std::string_view) {});
  testing::FaultyFileSystem fs;
  StoreOptions strict = options();
  strict.strict = true;
  const auto store = make_store(strict, fs);
  fs.fail_writes(ENOSPC);
  EXPECT_FALSE(store->put(share(make_artifact(1))).ok());
  set_log_sink({});
}

// Guards: a program that ends right after its last build, without destroying anything, builds it
// again each time.
TEST_F(WriteBehindTest, TheEndOfTheProcessWritesWhatWaits) {
  testing::Child child({KILN_TEST_HELPER, "behind", dir_.path(), "0", "50"});
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(files_below(dir_.path()).size(), 50u);
}

TEST_F(WriteBehindTest, AForkedChildWritesByItself) {
  const auto store = make_store(options());
  ASSERT_THAT(store->put(share(make_artifact(1))), is_ok());
  ASSERT_TRUE(store->flush(absl::Seconds(60)));
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool ok = store->put(share(make_artifact(2))).ok() && store->flush(absl::Seconds(1));
    ::_exit(ok ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files_below(dir_.path()).size(), 2u);
}

}  // namespace
}  // namespace kiln::cache
