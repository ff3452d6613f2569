#include "cache/store.h"

#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdlib.h>
#include <string>
#include <unistd.h>

namespace kiln::cache {
namespace {

using testing::files_below;
using testing::is_ok;
using testing::make_artifact;
using testing::same_artifact;
using testing::share;

class StoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open(const std::string& dir) { return make_store({.disk_dir = dir}); }
  std::unique_ptr<Store> open() { return open(dir_.path()); }
  // The only artifact file in the cache.
  std::string artifact_file() {
    const auto files = files_below(dir_ / "v1");
    EXPECT_EQ(files.size(), 1u);
    return files.empty() ? "" : files[0];
  }

  testing::TempDir dir_;
  const Artifact artifact_ = make_artifact(1);
};

TEST_F(StoreTest, FoundInMemoryThenOnDiskByAnotherProcessesStore) {
  const auto first = open();
  EXPECT_FALSE((*first->find(artifact_)).has_value());
  ASSERT_THAT(first->put(share(artifact_)), is_ok());
  EXPECT_EQ((*first->find(artifact_))->tier, TierKind::memory);

  const auto second = open();
  const auto found = *second->find(artifact_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->tier, TierKind::disk);
  EXPECT_TRUE(same_artifact(*found->artifact, artifact_));
  EXPECT_EQ((*second->find(artifact_))->tier, TierKind::memory)
      << "a hit fills the tiers before it";
  const StoreStats stats = second->stats();
  EXPECT_EQ(stats.disk_hits, 1);
  EXPECT_EQ(stats.memory_hits, 1);
  EXPECT_EQ(stats.misses, 0);
  EXPECT_EQ(stats.errors, 0);
  EXPECT_GT(stats.bytes_read, 0);
}

TEST_F(StoreTest, FilesAreFannedOutPrivateAndShortNamed) {
  ASSERT_THAT(open()->put(share(artifact_)), is_ok());
  const std::string hex = to_hex(artifact_.key);
  EXPECT_EQ(artifact_file(), dir_ / ("v1/" + hex.substr(0, 2) + "/" + hex + ".kiln"));
  EXPECT_EQ(std::filesystem::status(artifact_file()).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(std::filesystem::status(dir_ / "v1").permissions(), std::filesystem::perms(0700));
}

TEST_F(StoreTest, CollisionIsAMissInEveryTier) {
  const auto store = open();
  ASSERT_THAT(store->put(share(artifact_)), is_ok());
  Artifact other = artifact_;
  other.source_fields[0].value += " ";
  EXPECT_FALSE((*store->find(other)).has_value());
  EXPECT_FALSE((*open()->find(other)).has_value());
  other = artifact_;
  other.compiler_fields[1].value = "sm_80";
  EXPECT_FALSE((*open()->find(other)).has_value());
  EXPECT_TRUE((*open()->find(artifact_)).has_value()) << "and harms nothing";
}

TEST_F(StoreTest, AnArtifactUnderAnothersNameIsSetAside) {
  ASSERT_THAT(open()->put(share(artifact_)), is_ok());
  testing::write_file(artifact_file(), serialize(make_artifact(2)));
  const auto store = open();
  EXPECT_FALSE((*store->find(artifact_)).has_value());
  EXPECT_EQ(store->stats().quarantined, 1);
}

TEST_F(StoreTest, HostilePathsWork) {
  for (const char* name :
       {"with space", "\xc3\xbcml\xc3\xa4ut", "it's \"q\" ; $(x) %s {}", "new\nline"}) {
    const std::string dir = dir_ / name;
    ASSERT_THAT(open(dir)->put(share(artifact_)), is_ok());
    const auto store = open(dir);
    EXPECT_TRUE((*store->find(artifact_)).has_value()) << name;
    EXPECT_THAT(store->lease(artifact_.key, absl::InfiniteFuture()), is_ok());
    EXPECT_EQ(store->stats().errors, 0) << name;
  }
}

TEST_F(StoreTest, WorksAfterTheCurrentFolderIsGone) {
  const std::string before = std::filesystem::current_path();
  ASSERT_EQ(::mkdir((dir_ / "cwd").c_str(), 0700), 0);
  ASSERT_EQ(::chdir((dir_ / "cwd").c_str()), 0);
  const auto store = open("../cache");
  ASSERT_EQ(::rmdir((dir_ / "cwd").c_str()), 0);
  EXPECT_THAT(store->put(share(artifact_)), is_ok());
  EXPECT_EQ(store->stats().errors, 0);
  EXPECT_TRUE((*open(dir_ / "cache")->find(artifact_)).has_value());
  const auto nowhere = open("relative");
  EXPECT_EQ(nowhere->disk_dir(), "");
  EXPECT_THAT(nowhere->put(share(artifact_)), is_ok());
  EXPECT_TRUE((*nowhere->find(artifact_)).has_value());
  EXPECT_EQ(nowhere->stats().errors, 1);
  ASSERT_EQ(::chdir(before.c_str()), 0);
}

TEST_F(StoreTest, AFolderDeletedUnderARunningProcessIsMadeAgain) {
  const auto store = open(dir_ / "cache");
  ASSERT_THAT(store->put(share(artifact_)), is_ok());
  std::filesystem::remove_all(dir_ / "cache");
  EXPECT_FALSE((*store->find(make_artifact(2))).has_value());
  EXPECT_THAT(store->put(share(make_artifact(2))), is_ok());
  EXPECT_TRUE((*open(dir_ / "cache")->find(make_artifact(2))).has_value());
  EXPECT_EQ(store->stats().errors, 0);
}

TEST_F(StoreTest, WithoutADiskTierLeasesAreFree) {
  const auto store = make_store({});
  EXPECT_EQ(store->disk_dir(), "");
  const auto a = store->lease(artifact_.key, absl::InfinitePast());
  const auto b = store->lease(artifact_.key, absl::InfinitePast());
  EXPECT_THAT(a, is_ok());
  EXPECT_THAT(b, is_ok());
}

TEST_F(StoreTest, DefaultFolderFollowsTheEnvironment) {
  ::unsetenv("KILN_CACHE_DIR");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/h", 1);
  EXPECT_EQ(default_cache_dir(), "/h/.cache/kiln");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(default_cache_dir(), "/h/.cache/kiln");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(default_cache_dir(), "/x/kiln");
  ::setenv("KILN_CACHE_DIR", "/k", 1);
  EXPECT_EQ(default_cache_dir(), "/k");
  ::setenv("KILN_CACHE_DIR", "", 1);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(default_cache_dir(), "");
}

}  // namespace
}  // namespace kiln::cache
