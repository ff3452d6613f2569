#include "base/log.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

// Things that nobody expects in a cache folder: nothing hangs, nothing fails, nothing is believed.
namespace kiln::cache {
namespace {

namespace fs = std::filesystem;
using testing::is_ok;
using testing::make_artifact;
using testing::share;

class HostileTest : public ::testing::Test {
 protected:
  HostileTest() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~HostileTest() override { set_log_sink({}); }
  std::unique_ptr<Store> open() const {
    return make_store({.disk_dir = dir_.path(), .lease_wait = absl::Milliseconds(200)});
  }
  bool is_on_disk() const {
    const auto found = open()->find(artifact_);
    return found.ok() && found->has_value();
  }

  testing::TempDir dir_;
  const Artifact artifact_ = make_artifact(1);
  const std::string name_ = to_hex(artifact_.key);
  const std::string file_ = dir_ / ("v1/" + name_.substr(0, 2) + "/" + name_ + ".kiln");
};

using Place = std::function<void(const std::string& path)>;
const std::vector<std::pair<const char*, Place>>& things() {
  static const auto* const out = new std::vector<std::pair<const char*, Place>>{
      {"nothing in it", [](const std::string& path) { testing::write_file(path, ""); }},
      {"a FIFO", [](const std::string& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }},
      {"3 GiB of zeros",
       [](const std::string& path) {
         testing::write_file(path, "");
         fs::resize_file(path, 3ull << 30);
       }},
      {"a link to itself", [](const std::string& path) { fs::create_symlink(path, path); }},
      {"the other byte order",
       [](const std::string& path) {
         std::string bytes = serialize(make_artifact(1));
         std::reverse(bytes.begin(), bytes.begin() + 8);
         std::reverse(bytes.begin() + 8, bytes.begin() + 12);
         testing::write_file(path, bytes);
       }},
      {"a folder", [](const std::string& path) { fs::create_directory(path); }},
  };
  return *out;
}

TEST_F(HostileTest, InPlaceOfAnArtifactItIsAMissAndTheNextBuildTakesItsPlace) {
  for (const auto& [what, place] : things()) {
    fs::create_directories(fs::path(file_).parent_path());
    fs::permissions(dir_ / "v1", fs::perms::owner_all);
    fs::permissions(fs::path(file_).parent_path(), fs::perms::owner_all);
    place(file_);
    const auto store = open();
    const auto found = store->find(artifact_);
    ASSERT_THAT(found, is_ok()) << what;
    EXPECT_FALSE(found->has_value()) << what;
    EXPECT_EQ(store->stats().quarantined + store->stats().errors, 1) << what;
    ASSERT_THAT(store->find_by_source(artifact_), is_ok()) << what;
    ASSERT_THAT(store->put(share(artifact_)), is_ok()) << what;
    EXPECT_TRUE((*store->find(artifact_)).has_value()) << what;
    EXPECT_EQ(is_on_disk(), what != std::string("a folder")) << what;
    fs::remove_all(file_);
  }
}

TEST_F(HostileTest, InPlaceOfALeaseItDelaysByNoMoreThanADeadHolder) {
  fs::create_directory(dir_ / "leases");
  fs::permissions(dir_ / "leases", fs::perms::owner_all);
  for (const auto& [what, place] : things()) {
    const std::string lease = dir_ / ("leases/" + name_ + ".lease");
    place(lease);
    EXPECT_THAT(open()->lease(artifact_.key, absl::Now() + absl::Minutes(5)), is_ok()) << what;
    fs::remove_all(lease);
  }
}

TEST_F(HostileTest, AFileInPlaceOfAnyFolderCostsTheDiskAlone) {
  for (const std::string& folder : {std::string("v1"), "v1/" + name_.substr(0, 2),
                                    std::string("leases"), std::string("quarantine")}) {
    for (const auto& entry : fs::directory_iterator(dir_.path())) fs::remove_all(entry);
    fs::create_directories(fs::path(dir_ / folder).parent_path());
    fs::permissions(fs::path(dir_ / folder).parent_path(), fs::perms::owner_all);
    testing::write_file(dir_ / folder, "no folder");
    const auto store = open();
    ASSERT_THAT(store->find(artifact_), is_ok()) << folder;
    ASSERT_THAT(store->lease(artifact_.key, absl::Now() + absl::Minutes(5)), is_ok()) << folder;
    ASSERT_THAT(store->put(share(artifact_)), is_ok()) << folder;
    EXPECT_TRUE((*store->find(artifact_)).has_value()) << folder;
  }
}

TEST_F(HostileTest, DamageThatCannotBeSetAsideIsBuiltOverAllTheSame) {
  ASSERT_THAT(open()->put(share(artifact_)), is_ok());
  testing::write_file(file_, "damaged");
  testing::write_file(dir_ / "quarantine", "no folder");
  const auto store = open();
  EXPECT_FALSE((*store->find(artifact_)).has_value());
  ASSERT_THAT(store->put(share(artifact_)), is_ok());
  EXPECT_TRUE(is_on_disk());
}

TEST_F(HostileTest, InPlaceOfALayerItIsSkippedWithAReason) {
  for (const auto& [what, place] : things()) {
    const std::string path = dir_ / "layer.kpack";
    place(path);
    const auto store = make_store({.layers = {path}});
    ASSERT_EQ(store->layers().size(), 1u);
    if (what == std::string("a folder")) {
      EXPECT_EQ(store->layers()[0].reason, "") << "an empty layer";
    } else {
      EXPECT_NE(store->layers()[0].reason, "") << what;
    }
    EXPECT_FALSE((*store->find(artifact_)).has_value()) << what;
    fs::remove_all(path);
  }
}

// Guards: a home that is missing, or where nothing can be made; names over 255 bytes.
TEST_F(HostileTest, AFolderThatCannotBeCostsTheDiskAlone) {
  std::string deep = dir_.path();
  for (int i = 0; i < 50; ++i) deep += "/" + std::string(200, 'd');
  for (const std::string& path : {std::string("/dev/null/cache"), std::string("/proc/kiln/cache"),
                                  dir_ / std::string(300, 'n'), deep}) {
    const auto store = make_store({.disk_dir = path, .layers = {path}});
    EXPECT_EQ(store->disk_dir(), "") << path;
    ASSERT_THAT(store->put(share(artifact_)), is_ok());
    EXPECT_TRUE((*store->find(artifact_)).has_value());
    EXPECT_THAT(store->lease(artifact_.key, absl::InfinitePast()), is_ok());
  }
}

}  // namespace
}  // namespace kiln::cache
