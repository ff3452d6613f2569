#include "cache/garbage.h"

#include "base/file_system.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace kiln::cache {
namespace {

using testing::files_below;
using testing::is_ok;
using testing::make_artifact;
using testing::share;

class GarbageTest : public ::testing::Test {
 protected:
  // Artifact `seed`, last used `hours` ago.
  void put(int seed, int hours) {
    ASSERT_THAT(make_store({.disk_dir = dir_.path()})->put(share(make_artifact(seed, 10000))),
                is_ok());
    age(path(seed), hours);
  }
  std::string path(int seed) const { return folder_.artifact_path(make_artifact(seed).key); }
  static void age(const std::string& file, int hours) {
    std::filesystem::last_write_time(
        file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  std::vector<int> left(int count) const {
    std::vector<int> out;
    for (int seed = 0; seed < count; ++seed) {
      if (testing::exists(path(seed))) out.push_back(seed);
    }
    return out;
  }

  testing::TempDir dir_;
  const CacheDir folder_{real_file_system(), dir_.path(), FolderRules{}};
};

TEST_F(GarbageTest, TheLeastRecentlyUsedGoUntilTheLimitHolds) {
  for (int seed = 0; seed < 10; ++seed) put(seed, 100 - seed * 5);
  // A hit is a use: the stamp is set anew.
  EXPECT_TRUE((*make_store({.disk_dir = dir_.path()})->find(make_artifact(0))).has_value());
  const auto report = collect_garbage(folder_, {.max_bytes = 60000});
  ASSERT_THAT(report, is_ok());
  EXPECT_THAT(left(10), ::testing::ElementsAre(0, 6, 7, 8, 9));
  EXPECT_EQ(report->evicted, 5);
  EXPECT_EQ(report->files, 5);
  EXPECT_LE(report->bytes, 54000);
  EXPECT_EQ(collect_garbage(folder_, {.max_bytes = 60000})->evicted, 0) << "one pass is enough";
}

// Guards: a clock that was wrong once, and files that are young until it is as late as it said.
TEST_F(GarbageTest, StampsFromTheFutureKeepNothing) {
  for (int seed = 0; seed < 4; ++seed) put(seed, seed < 2 ? -1000 : 10);
  EXPECT_TRUE((*make_store({.disk_dir = dir_.path()})->find(make_artifact(1))).has_value());
  ASSERT_THAT(collect_garbage(folder_, {.max_bytes = 40000}), is_ok());
  EXPECT_THAT(left(4), ::testing::ElementsAre(1, 2, 3)) << "a use sets the stamp right";
  for (int seed = 1; seed < 4; ++seed) age(path(seed), -1000);
  ASSERT_THAT(collect_garbage(folder_, {.max_bytes = 1}), is_ok());
  EXPECT_THAT(left(4), ::testing::IsEmpty());
}

TEST_F(GarbageTest, NothingIsRemovedWhereALinkLeads) {
  const testing::TempDir other;
  put(0, 100);
  namespace fs = std::filesystem;
  const std::string shard = fs::path(path(0)).parent_path();
  fs::rename(shard, other / "shard");
  testing::write_file(other / "shard/tmp.mine", "mine");
  fs::create_directories(other / "leases");
  testing::write_file(other / "leases/mine", "mine");
  for (const char* file : {"shard/tmp.mine", "leases/mine"}) age(other / file, 100);
  fs::create_directory_symlink(other / "shard", shard);
  fs::create_directory_symlink(other / "leases", folder_.lease_folder());
  const auto report = collect_garbage(folder_, {.max_bytes = 1});
  ASSERT_THAT(report, is_ok());
  EXPECT_EQ(report->swept + report->evicted, 0);
  ASSERT_THAT(clear_artifacts(folder_), is_ok());
  EXPECT_EQ(files_below(other.path()).size(), 3u);
}

TEST_F(GarbageTest, WhatWasJustUsedStays) {
  for (int seed = 0; seed < 4; ++seed) put(seed, 0);
  EXPECT_EQ(collect_garbage(folder_, {.max_bytes = 1})->evicted, 0);
  EXPECT_EQ(collect_garbage(folder_, {.max_bytes = 1, .grace = absl::ZeroDuration()})->evicted, 4);
}

TEST_F(GarbageTest, AStoreKeepsItsLimitByItself) {
  for (int seed = 0; seed < 10; ++seed) put(seed, 100 - seed);
  const auto store = make_store({.disk_dir = dir_.path(), .max_disk_bytes = 50000});
  ASSERT_THAT(store->put(share(make_artifact(10, 10000))), is_ok());
  EXPECT_THAT(left(11), ::testing::ElementsAre(7, 8, 9, 10));
  EXPECT_EQ(store->stats().evicted, 7);
}

TEST_F(GarbageTest, LeftoversAreSweptByAge) {
  put(0, 1);
  const std::string shard = std::filesystem::path(path(0)).parent_path();
  for (const std::string& folder :
       {folder_.lease_folder(), folder_.quarantine_folder(), folder_.tuning_folder()})
    ASSERT_THAT(folder_.make_folder(folder), is_ok());
  const std::string old_temp = shard + "/tmp.1-a-0", young_temp = shard + "/tmp.2-b-0";
  const std::string lease = folder_.lease_path(make_artifact(1).key);
  const std::string aside = folder_.quarantine_path(make_artifact(2).key);
  const std::string old_record = folder_.tuning_folder() + "/tmp.1-a-1";
  const std::string record = folder_.tuning_folder() + "/record.json";
  for (const std::string& file : {old_temp, young_temp, lease, aside, old_record, record})
    testing::write_file(file, "x");
  for (const std::string& file : {old_temp, old_record, record}) age(file, 2);
  age(lease, 2);
  age(aside, 24 * 29);
  EXPECT_EQ(collect_garbage(folder_, {})->swept, 3);
  EXPECT_FALSE(testing::exists(old_temp));
  EXPECT_FALSE(testing::exists(old_record));
  EXPECT_TRUE(testing::exists(record));
  EXPECT_FALSE(testing::exists(lease));
  EXPECT_TRUE(testing::exists(young_temp)) << "somebody may be writing it";
  EXPECT_TRUE(testing::exists(aside));
  age(aside, 24 * 31);
  EXPECT_EQ(collect_garbage(folder_, {})->swept, 1);
}

TEST_F(GarbageTest, OtherFormatVersionsCountAndGoToo) {
  put(0, 10);
  const std::string key = to_hex(make_artifact(1).key);
  std::filesystem::create_directories(dir_ / "v2/" + key.substr(0, 2));
  const std::string other = dir_ / "v2/" + key.substr(0, 2) + "/" + key + ".kiln";
  testing::write_file(other, std::string(10000, 'n'));
  age(other, 20);
  EXPECT_EQ(list_artifacts(folder_)->size(), 2u);
  EXPECT_EQ(collect_garbage(folder_, {.max_bytes = 15000})->evicted, 1);
  EXPECT_FALSE(testing::exists(other));
}

// Guards: eviction by many at once removes more than the limit asks, or what is in use.
TEST_F(GarbageTest, ManyCollectorsRemoveWhatOneWould) {
  for (int seed = 0; seed < 40; ++seed) put(seed, 100 - seed);
  std::vector<std::thread> threads;
  std::atomic<std::int64_t> evicted{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto report = collect_garbage(folder_, {.max_bytes = 200000});
      if (report.ok()) evicted += report->evicted;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(evicted, 40 - static_cast<std::int64_t>(left(40).size()));
  EXPECT_GE(left(40).size(), 16u);
  EXPECT_LE(left(40).size(), 20u);
  EXPECT_EQ(left(40).back(), 39);
}

TEST_F(GarbageTest, ReadersBesideACollectorGetWholeArtifactsOrNone) {
  std::atomic<bool> stop{false};
  std::thread collector([&] {
    while (!stop)
      EXPECT_THAT(collect_garbage(folder_, {.max_bytes = 1, .grace = absl::ZeroDuration()}),
                  is_ok());
  });
  for (int i = 0; i < 200; ++i) {
    const auto store = make_store({.disk_dir = dir_.path()});
    ASSERT_THAT(store->put(share(make_artifact(i % 4, 10000))), is_ok());
    const auto reader = make_store({.disk_dir = dir_.path()});
    const auto found = *reader->find(make_artifact(i % 4));
    if (found) {
      EXPECT_EQ(found->artifact->image, make_artifact(i % 4, 10000).image);
    }
    EXPECT_EQ(reader->stats().errors + reader->stats().quarantined, 0);
  }
  stop = true;
  collector.join();
}

TEST_F(GarbageTest, ClearRemovesEverythingButOthersLeases) {
  for (int seed = 0; seed < 3; ++seed) put(seed, 0);
  const auto store = make_store({.disk_dir = dir_.path()});
  const auto lease = store->lease(make_artifact(9).key, absl::InfiniteFuture());
  EXPECT_EQ(*clear_artifacts(folder_), 3);
  EXPECT_EQ(files_below(dir_.path()).size(), 1u);
}

TEST(ParseBytesTest, NumbersWithUnits) {
  EXPECT_EQ(*parse_bytes("0"), 0);
  EXPECT_EQ(*parse_bytes("4294967296"), 4ll << 30);
  EXPECT_EQ(*parse_bytes("4G"), 4ll << 30);
  EXPECT_EQ(*parse_bytes("512MiB"), 512ll << 20);
  EXPECT_EQ(*parse_bytes("1k"), 1024);
  for (const char* bad :
       {"", "G", "-1", "4 G", "4X", "4GB", "99999999999999999999", "9999999999T"}) {
    EXPECT_FALSE(parse_bytes(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace kiln::cache
