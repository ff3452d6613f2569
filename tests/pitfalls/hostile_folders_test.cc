// A home that is missing, read-only, full or not a folder at all raised an exception where running
// without a cache would do; and names longer than the file system takes failed the build.
#include "base/log.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kiln::cache {
namespace {

using testing::is_ok;
using testing::make_artifact;
using testing::share;

class HostileFoldersTest : public ::testing::Test {
 protected:
  // One warning in all, an error counted, and everything served from memory.
  void expect_works_without(const std::string& dir) {
    SCOPED_TRACE(dir.substr(0, 100));
    int warnings = 0;
    set_log_sink([&warnings](LogLevel, std::string_view) { ++warnings; });
    const auto store = make_store({.disk_dir = dir});
    EXPECT_EQ(store->disk_dir(), "");
    for (int i = 0; i < 3; ++i) {
      const Artifact artifact = make_artifact(i);
      EXPECT_FALSE((*store->find(artifact)).has_value());
      EXPECT_THAT(store->lease(artifact.key, absl::InfiniteFuture()), is_ok());
      EXPECT_THAT(store->put(share(artifact)), is_ok());
      EXPECT_EQ((*store->find(artifact))->tier, TierKind::memory);
    }
    set_log_sink({});
    EXPECT_EQ(warnings, 1);
    EXPECT_EQ(store->stats().errors, 1);

    const auto strict = make_store({.disk_dir = dir, .strict = true});
    EXPECT_FALSE(strict->find(make_artifact(9)).ok());
    EXPECT_FALSE(strict->put(share(make_artifact(9))).ok());
    EXPECT_FALSE(strict->lease(make_artifact(9).key, absl::InfiniteFuture()).ok());
  }

  testing::TempDir dir_;
};

TEST_F(HostileFoldersTest, NotCreatable) { expect_works_without("/proc/kiln"); }

TEST_F(HostileFoldersTest, AFileInItsPlace) {
  testing::write_file(dir_ / "file", "x");
  expect_works_without(dir_ / "file");
  expect_works_without(dir_ / "file/below");
}

TEST_F(HostileFoldersTest, NameTooLong) {
  expect_works_without(dir_ / std::string(300, 'n'));
  std::string deep = dir_.path();
  while (deep.size() < 5000) deep += "/" + std::string(200, 'd');
  expect_works_without(deep);
}

}  // namespace
}  // namespace kiln::cache
