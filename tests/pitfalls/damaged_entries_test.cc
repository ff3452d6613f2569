// A truncated or same-size corrupted cache entry failed every run until somebody deleted it. Here
// it is found at its first load, moved away, counted and built again; a second look does not meet
// it any more.
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
using testing::same_artifact;
using testing::share;

class DamagedEntriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([](LogLevel, std::string_view) {});
    ASSERT_THAT(make_store({.disk_dir = dir_.path()})->put(share(artifact_)), is_ok());
    file_ = testing::files_below(dir_ / "v1").at(0);
    good_ = testing::read_file(file_);
  }
  void TearDown() override { set_log_sink({}); }

  void expect_set_aside_and_repaired(const std::string& bytes) {
    testing::write_file(file_, bytes);
    const auto store = make_store({.disk_dir = dir_.path()});
    const auto found = store->find(artifact_);
    ASSERT_THAT(found, is_ok());
    ASSERT_FALSE(found->has_value());
    ASSERT_FALSE(testing::exists(file_));
    ASSERT_FALSE((*store->find(artifact_)).has_value());
    EXPECT_EQ(store->stats().quarantined, 1) << "the second look is a plain miss";
    EXPECT_EQ(store->stats().errors, 0);
    ASSERT_THAT(store->put(share(artifact_)), is_ok());
    const auto again = *make_store({.disk_dir = dir_.path()})->find(artifact_);
    ASSERT_TRUE(again && same_artifact(*again->artifact, artifact_));
  }

  testing::TempDir dir_;
  const Artifact artifact_ = make_artifact(1);
  std::string file_, good_;
};

TEST_F(DamagedEntriesTest, TornAtEveryLength) {
  for (std::size_t size = 0; size < good_.size(); ++size) {
    SCOPED_TRACE(size);
    expect_set_aside_and_repaired(good_.substr(0, size));
  }
  EXPECT_EQ(testing::files_below(dir_.path()).size(), 2u)
      << "the quarantine keeps one file for a key";
}

TEST_F(DamagedEntriesTest, OneByteChangedAnywhere) {
  for (std::size_t i = 0; i < good_.size(); ++i) {
    SCOPED_TRACE(i);
    std::string bad = good_;
    bad[i] = static_cast<char>(~bad[i]);
    expect_set_aside_and_repaired(bad);
  }
}

TEST_F(DamagedEntriesTest, ForeignContent) {
  expect_set_aside_and_repaired("SQLite format 3");
  expect_set_aside_and_repaired(std::string(good_.size(), '\0'));
  expect_set_aside_and_repaired(good_ + good_);
}

}  // namespace
}  // namespace kiln::cache
