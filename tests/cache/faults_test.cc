#include "base/log.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <errno.h>
#include <string>

namespace kiln::cache {
namespace {

using testing::FaultyFileSystem;
using testing::files_below;
using testing::is_ok;
using testing::make_artifact;
using testing::same_artifact;
using testing::share;

constexpr int kErrors[] = {ENOSPC, EROFS, EACCES, ESTALE, EBUSY, EIO, EDQUOT, ENAMETOOLONG, EMFILE};

class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  void TearDown() override { set_log_sink({}); }

  // Whatever happened before: each file under an artifact's name is a whole artifact.
  static void expect_no_torn_file(const std::string& cache) {
    for (const std::string& path : files_below(cache + "/v1")) {
      if (path.find("/tmp.") != std::string::npos) continue;
      EXPECT_THAT(parse_artifact(testing::read_file(path)), is_ok()) << path;
    }
  }

  const Artifact artifact_ = make_artifact(1, 3000);
};

// Fails the n-th call until everything goes through, once alone and once with all calls after it.
TEST_F(FaultsTest, EveryNthCallFailing) {
  for (const int error : kErrors) {
    for (const bool and_after : {false, true}) {
      bool reached = true;
      for (int n = 1; reached; ++n) {
        SCOPED_TRACE(::testing::Message()
                     << strerror(error) << " at call " << n << (and_after ? " and after" : ""));
        testing::TempDir dir;
        FaultyFileSystem fs;
        fs.fail_at(n, error, and_after);
        const auto store =
            make_store({.disk_dir = dir.path(), .lease_wait = absl::Milliseconds(50)}, fs);
        EXPECT_THAT(store->find(artifact_), is_ok());
        EXPECT_THAT(store->lease(artifact_.key, absl::InfiniteFuture()), is_ok());
        EXPECT_THAT(store->put(share(artifact_)), is_ok());
        EXPECT_EQ((*store->find(artifact_))->tier, TierKind::memory);
        reached = fs.calls() >= n;
        fs.heal();
        expect_no_torn_file(dir.path());
        const auto next = make_store({.disk_dir = dir.path()}, fs);
        const auto found = next->find(artifact_);
        ASSERT_THAT(found, is_ok());
        EXPECT_TRUE(!found->has_value() || same_artifact(*(*found)->artifact, artifact_));
        EXPECT_EQ(next->stats().quarantined, 0);
        EXPECT_TRUE(reached || found->has_value()) << "without a fault it is there";
      }
    }
  }
}

TEST_F(FaultsTest, EveryNthCallOfAReadFailing) {
  testing::TempDir dir;
  ASSERT_THAT(make_store({.disk_dir = dir.path()})->put(share(artifact_)), is_ok());
  for (const int error : kErrors) {
    FaultyFileSystem fs;
    bool reached = true;
    for (int n = 1; reached; ++n) {
      const auto store = make_store({.disk_dir = dir.path()}, fs);
      fs.fail_at(n, error);
      const auto found = store->find(artifact_);
      ASSERT_THAT(found, is_ok());
      reached = fs.calls() >= n;
      if (reached && error != ESTALE) {
        EXPECT_FALSE(found->has_value());
        EXPECT_EQ(store->stats().errors, 1);
      } else {
        EXPECT_TRUE(found->has_value()) << "a stale handle is asked again";
      }
      EXPECT_EQ(store->stats().quarantined, 0) << "an I/O error is no damage";
      fs.heal();
    }
  }
}

TEST_F(FaultsTest, StrictTurnsTroubleIntoErrors) {
  for (const int error : kErrors) {
    testing::TempDir dir;
    FaultyFileSystem fs;
    const auto store = make_store({.disk_dir = dir.path(), .strict = true}, fs);
    fs.fail_writes(error);
    const absl::Status put = store->put(share(artifact_));
    EXPECT_EQ(errno_of(put), error) << put;
    EXPECT_EQ(errno_of(store->lease(artifact_.key, absl::InfiniteFuture()).status()), error);
    EXPECT_EQ((*store->find(artifact_))->tier, TierKind::memory) << "kept all the same";
  }
}

TEST_F(FaultsTest, AReadOnlyFolderStillServes) {
  testing::TempDir dir;
  ASSERT_THAT(make_store({.disk_dir = dir.path()})->put(share(artifact_)), is_ok());
  FaultyFileSystem fs;
  fs.fail_writes(EROFS);
  const auto store = make_store({.disk_dir = dir.path()}, fs);
  EXPECT_EQ((*store->find(artifact_))->tier, TierKind::disk);
  EXPECT_THAT(store->put(share(make_artifact(2))), is_ok());
  EXPECT_THAT(store->lease(make_artifact(2).key, absl::InfiniteFuture()), is_ok());
  EXPECT_EQ(store->stats().errors, 2);
}

TEST_F(FaultsTest, HalfWritesMakeWholeFiles) {
  testing::TempDir dir;
  FaultyFileSystem fs;
  fs.set_rule([](const testing::FileCall& call) {
    return call.name == "write" ? FaultyFileSystem::kHalf : 0;
  });
  ASSERT_THAT(make_store({.disk_dir = dir.path()}, fs)->put(share(artifact_)), is_ok());
  EXPECT_TRUE((*make_store({.disk_dir = dir.path()})->find(artifact_)).has_value());
}

// The disk fills while the file is written: half of it is there, then nothing more goes in.
TEST_F(FaultsTest, ADiskThatFillsLeavesNothingBehind) {
  testing::TempDir dir;
  FaultyFileSystem fs;
  const auto store = make_store({.disk_dir = dir.path()}, fs);
  int writes = 0;
  fs.set_rule([&writes](const testing::FileCall& call) {
    if (call.name != "write") return 0;
    return ++writes == 1 ? FaultyFileSystem::kHalf : ENOSPC;
  });
  EXPECT_THAT(store->put(share(artifact_)), is_ok());
  EXPECT_EQ(store->stats().errors, 1);
  EXPECT_TRUE(files_below(dir.path()).empty());
}

// Guards: an entry is visible before its data is durable.
TEST_F(FaultsTest, TheFileIsSyncedBeforeItsNameAndTheFolderAfter) {
  testing::TempDir dir;
  FaultyFileSystem fs;
  const auto store = make_store({.disk_dir = dir.path()}, fs);
  std::vector<std::string> calls;
  fs.set_rule([&calls](const testing::FileCall& call) {
    if (call.writes && call.name != "make_dir") calls.emplace_back(call.name);
    return 0;
  });
  ASSERT_THAT(store->put(share(artifact_)), is_ok());
  EXPECT_THAT(calls, ::testing::ElementsAre("create", "write", "sync", "rename", "sync_dir"));
}

}  // namespace
}  // namespace kiln::cache
