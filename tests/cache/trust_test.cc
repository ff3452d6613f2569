#include "base/log.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

// A cached binary is code: what another user could have written is not loaded.
namespace kiln::cache {
namespace {

using testing::files_below;
using ::testing::HasSubstr;
using testing::is_ok;
using testing::make_artifact;
using testing::share;
using testing::status_is;

class TrustTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(make_store({.disk_dir = cache_})->put(share(artifact_)), is_ok());
    file_ = files_below(cache_)[0];
  }
  // Refused: a miss with an error counted, the file left where it is; a strict store says why.
  void expect_refused(const std::string& why) {
    const auto store = make_store({.disk_dir = cache_});
    EXPECT_FALSE((*store->find(artifact_)).has_value());
    EXPECT_GT(store->stats().errors, 0);
    EXPECT_EQ(store->stats().quarantined, 0);
    EXPECT_THAT(store->put(share(artifact_)), is_ok());
    EXPECT_TRUE((*store->find(artifact_)).has_value()) << "works on from memory";
    const auto strict = make_store({.disk_dir = cache_, .strict = true});
    EXPECT_THAT(strict->find(artifact_),
                status_is(absl::StatusCode::kPermissionDenied, HasSubstr(why)));
  }

  testing::TempDir dir_;
  const std::string cache_ = dir_ / "cache";
  const Artifact artifact_ = make_artifact(1);
  std::string file_;
};

TEST_F(TrustTest, AFolderThatOthersCanWriteIsRefused) {
  for (const mode_t mode : {0720, 0702, 01777}) {
    ASSERT_EQ(::chmod(cache_.c_str(), mode), 0);
    expect_refused("must not be writable by group or others");
  }
  ASSERT_EQ(::chmod(cache_.c_str(), 0755), 0);
  EXPECT_TRUE((*make_store({.disk_dir = cache_})->find(artifact_)).has_value());
}

TEST_F(TrustTest, ASubfolderThatOthersCanWriteIsRefused) {
  for (const std::string& folder :
       {cache_ + "/v1", cache_ + "/v1/" + to_hex(artifact_.key).substr(0, 2)}) {
    ASSERT_EQ(::chmod(folder.c_str(), 0770), 0);
    const auto strict = make_store({.disk_dir = cache_, .strict = true});
    EXPECT_THAT(strict->find(artifact_),
                status_is(absl::StatusCode::kPermissionDenied, HasSubstr(folder)));
    ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  }
}

TEST_F(TrustTest, AFileThatOthersCanWriteIsRefused) {
  ASSERT_EQ(::chmod(file_.c_str(), 0660), 0);
  const auto strict = make_store({.disk_dir = cache_, .strict = true});
  EXPECT_THAT(strict->find(artifact_),
              status_is(absl::StatusCode::kPermissionDenied, HasSubstr("got mode 0660")));
}

TEST_F(TrustTest, AnotherUsersFolderOrFileIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(file_.c_str(), 4711, 4711), 0);
  const auto strict = make_store({.disk_dir = cache_, .strict = true});
  EXPECT_THAT(strict->find(artifact_),
              status_is(absl::StatusCode::kPermissionDenied, HasSubstr("got user 4711")));
  ASSERT_EQ(::chown(file_.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(cache_.c_str(), 4711, 4711), 0);
  expect_refused("got user 4711");
}

TEST_F(TrustTest, AFolderIsSharedByItsGroupOnlyWhenSaid) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(cache_.c_str(), 4711, ::getegid()), 0);
  ASSERT_EQ(::chmod(cache_.c_str(), 02770), 0);
  ASSERT_EQ(::chown(file_.c_str(), 4712, ::getegid()), 0);
  ASSERT_EQ(::chmod(file_.c_str(), 0660), 0);
  expect_refused("got user 4711");
  const StoreOptions shared{.disk_dir = cache_, .group_shared = true, .strict = true};
  const auto store = make_store(shared);
  EXPECT_TRUE((*store->find(artifact_)).has_value());
  const mode_t before = ::umask(077);
  const Artifact other = make_artifact(2);
  EXPECT_THAT(store->put(share(other)), is_ok());
  ::umask(before);
  struct ::stat st;
  const std::string folder = cache_ + "/v1/" + to_hex(other.key).substr(0, 2);
  ASSERT_EQ(::stat(folder.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 02770u) << "other members can write it, whatever the umask is";
  ASSERT_EQ(::stat((folder + "/" + to_hex(other.key) + ".kiln").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0660u);
  // Another group's file in it, and a folder that everybody can write, are refused all the same.
  ASSERT_EQ(::chown(file_.c_str(), 4712, 4713), 0);
  EXPECT_THAT(make_store(shared)->find(artifact_),
              status_is(absl::StatusCode::kPermissionDenied, HasSubstr("got user 4712")));
  ASSERT_EQ(::chmod(cache_.c_str(), 02777), 0);
  EXPECT_FALSE(make_store(shared)->find(other).ok());
  ASSERT_EQ(::chown(cache_.c_str(), 4711, 4713), 0);
  ASSERT_EQ(::chmod(cache_.c_str(), 02770), 0);
  EXPECT_THAT(
      make_store(shared)->find(other),
      status_is(absl::StatusCode::kPermissionDenied, HasSubstr("must be one of this process's")));
}

TEST_F(TrustTest, LinksAreNotFollowed) {
  std::filesystem::rename(file_, dir_ / "elsewhere");
  std::filesystem::create_symlink(dir_ / "elsewhere", file_);
  const auto store = make_store({.disk_dir = cache_});
  EXPECT_FALSE((*store->find(artifact_)).has_value());
  EXPECT_EQ(store->stats().errors, 1);
  std::filesystem::create_directory_symlink(cache_, dir_ / "link");
  const auto strict = make_store({.disk_dir = dir_ / "link", .strict = true});
  EXPECT_THAT(strict->find(artifact_),
              status_is(absl::StatusCode::kPermissionDenied, HasSubstr("got a link")));
  EXPECT_EQ(strict->disk_dir(), "");
}

TEST_F(TrustTest, AWriteThroughAPlantedLinkReplacesTheLink) {
  testing::write_file(dir_ / "victim", "precious");
  std::filesystem::remove(file_);
  std::filesystem::create_symlink(dir_ / "victim", file_);
  EXPECT_THAT(make_store({.disk_dir = cache_})->put(share(artifact_)), is_ok());
  EXPECT_EQ(testing::read_file(dir_ / "victim"), "precious");
  EXPECT_TRUE((*make_store({.disk_dir = cache_})->find(artifact_)).has_value());
}

TEST_F(TrustTest, OneWarningForAKindOfTrouble) {
  ASSERT_EQ(::chmod(cache_.c_str(), 0777), 0);
  int warnings = 0;
  set_log_sink([&warnings](LogLevel, std::string_view) { ++warnings; });
  for (int i = 0; i < 5; ++i) {
    const auto store = make_store({.disk_dir = cache_});
    EXPECT_THAT(store->find(artifact_), is_ok());
  }
  set_log_sink({});
  EXPECT_EQ(warnings, 1);
}

}  // namespace
}  // namespace kiln::cache
