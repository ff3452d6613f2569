#include "base/file_system.h"
#include "base/log.h"
#include "cache/garbage.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/kill_at.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <sys/stat.h>

// A process is killed before each of the system calls that it makes, one after the other; what is
// left must be right for everybody else.
namespace kiln::cache {
namespace {

using testing::files_below;
using testing::is_ok;
using testing::make_artifact;
using testing::share;

constexpr std::size_t kImageBytes = 20000;
constexpr int kMostCalls = 2000;

class KillTest : public ::testing::Test {
 protected:
  KillTest() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~KillTest() override { set_log_sink({}); }

  // Kills `action` of the helper at its first call, its second, and so on; `prepare` and `check`
  // are called around each. Returns how many there were.
  template <class Prepare, class Check>
  int kill_at_each(const std::string& action, Prepare prepare, Check check) {
    for (int n = 1; n < kMostCalls; ++n) {
      const testing::TempDir dir;
      prepare(dir.path());
      const bool killed =
          testing::kill_at_system_call({KILN_TEST_HELPER, action, dir.path(), "1"}, n);
      SCOPED_TRACE(action + " killed at call " + std::to_string(n));
      check(dir.path(), killed);
      others_can_go_on(dir.path());
      if (!killed) return n - 1;
      if (HasFailure()) return n;
    }
    ADD_FAILURE() << action << " makes more than " << kMostCalls << " calls";
    return 0;
  }

  // Looks, takes the lease, builds, and collects what the dead one left.
  void others_can_go_on(const std::string& dir) const {
    const auto store = make_store({.disk_dir = dir, .lease_wait = absl::Milliseconds(200)});
    const auto found = *store->find(artifact_);
    if (found) {
      EXPECT_TRUE(testing::same_artifact(*found->artifact, artifact_));
    }
    {
      const auto lease = store->lease(artifact_.key, absl::Now() + absl::Seconds(60));
      ASSERT_THAT(lease, is_ok());
      ASSERT_THAT(store->put(share(artifact_)), is_ok());
    }
    EXPECT_TRUE((*make_store({.disk_dir = dir})->find(artifact_)).has_value());
    EXPECT_EQ(store->stats().quarantined, 0);
    EXPECT_EQ(store->stats().errors, 0);
    const CacheDir folder(real_file_system(), dir, FolderRules{});
    ASSERT_THAT(collect_garbage(
                    folder, {.temp_age = absl::ZeroDuration(), .aside_age = absl::ZeroDuration()}),
                is_ok());
    EXPECT_EQ(files_below(dir), std::vector<std::string>{folder.artifact_path(artifact_.key)});
  }
  bool is_there(const std::string& dir) const {
    return (*make_store({.disk_dir = dir})->find(artifact_)).has_value();
  }
  std::string path_in(const std::string& dir) const {
    return CacheDir(real_file_system(), dir, FolderRules{}).artifact_path(artifact_.key);
  }

  const Artifact artifact_ = make_artifact(1, kImageBytes);
};

TEST_F(KillTest, AWriterLeavesNothingOrTheWholeArtifact) {
  bool was_there = false;
  const int calls = kill_at_each(
      "put-once", [](const std::string&) {},
      [&](const std::string& dir, bool killed) {
        const bool there = is_there(dir);
        EXPECT_TRUE(there || !was_there) << "once kept it stays";
        EXPECT_TRUE(there || killed);
        was_there = there;
      });
  EXPECT_GT(calls, 15) << "folders, lease, file, sync, rename, sync, release";
}

TEST_F(KillTest, WhoSetsDamageAsideLosesNothing) {
  const int calls = kill_at_each(
      "put-once",
      [&](const std::string& dir) {
        ASSERT_THAT(make_store({.disk_dir = dir})->put(share(artifact_)), is_ok());
        std::string bytes = testing::read_file(path_in(dir));
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
        testing::write_file(path_in(dir), bytes);
        ::chmod(path_in(dir).c_str(), 0600);
      },
      [&](const std::string& dir, bool killed) {
        const bool there = is_there(dir);  // sets aside what is still damaged
        EXPECT_TRUE(there || killed);
        EXPECT_TRUE(there || !testing::exists(path_in(dir)));
      });
  EXPECT_GT(calls, 15);
}

TEST_F(KillTest, CollectingGarbageLeavesWholeArtifacts) {
  const int calls = kill_at_each(
      "collect",
      [&](const std::string& dir) {
        const auto store = make_store({.disk_dir = dir});
        for (int seed = 1; seed < 4; ++seed)
          ASSERT_THAT(store->put(share(make_artifact(seed, kImageBytes))), is_ok());
      },
      [&](const std::string& dir, bool) {
        const auto store = make_store({.disk_dir = dir});
        for (int seed = 1; seed < 4; ++seed)
          ASSERT_THAT(store->find(make_artifact(seed, kImageBytes)), is_ok());
        EXPECT_EQ(store->stats().quarantined, 0);
        ASSERT_THAT(clear_artifacts(CacheDir(real_file_system(), dir, FolderRules{})), is_ok());
      });
  EXPECT_GT(calls, 10);
}

}  // namespace
}  // namespace kiln::cache
