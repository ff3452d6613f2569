#include "base/log.h"
#include "cache/pack.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <sys/stat.h>

namespace kiln::cache {
namespace {

using testing::files_below;
using ::testing::HasSubstr;
using testing::is_ok;
using testing::make_artifact;
using testing::same_artifact;
using testing::share;

Artifact by_compiler(Artifact artifact, const std::string& build) {
  artifact.compiler_fields = {{"compiler", "nvrtc"}, {"build", build}};
  artifact.key.compiler = hash_fields(artifact.compiler_fields);
  artifact.image += build;
  return artifact;
}

class LayerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel, std::string_view line) { log_ += std::string(line) + "\n"; });
  }
  void TearDown() override { set_log_sink({}); }

  std::string write_pack(const std::string& name, const std::vector<Artifact>& artifacts,
                         const SigningKey* key = nullptr) {
    PackContents contents;
    for (const Artifact& artifact : artifacts) contents.artifacts.push_back(share(artifact));
    testing::write_file(dir_ / name, *make_pack(std::move(contents), key));
    ::chmod((dir_ / name).c_str(), 0644);
    return dir_ / name;
  }
  std::string write_folder(const std::string& name, const std::vector<Artifact>& artifacts) {
    const auto store = make_store({.disk_dir = dir_ / name});
    for (const Artifact& artifact : artifacts) EXPECT_THAT(store->put(share(artifact)), is_ok());
    return dir_ / name;
  }

  testing::TempDir dir_;
  std::string log_;
  const Artifact artifact_ = make_artifact(1, 300);
};

TEST_F(LayerTest, FoldersAndPacksAreAskedAfterTheDisk) {
  const std::string folder = write_folder("folder", {make_artifact(1, 300), make_artifact(2)});
  const std::string pack = write_pack("a.kpack", {make_artifact(3), make_artifact(2, 100)});
  const auto store = make_store({.disk_dir = dir_ / "cache", .layers = {folder, pack}});
  for (int seed : {1, 2, 3}) {
    const auto found = *store->find(make_artifact(seed));
    ASSERT_TRUE(found) << seed;
    EXPECT_EQ(found->tier, TierKind::layer);
  }
  EXPECT_EQ((*store->find(make_artifact(2)))->artifact->image.size(), 64u)
      << "the first layer that has it";
  EXPECT_EQ((*store->find(artifact_))->tier, TierKind::memory);
  EXPECT_FALSE((*store->find(make_artifact(4))).has_value());
  EXPECT_EQ(store->stats().layer_hits, 3);
  EXPECT_TRUE(files_below(dir_ / "cache").empty()) << "a layer is not copied to the disk";
  const auto layers = store->layers();
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[1].artifacts, 2);
  EXPECT_EQ(layers[0].reason + layers[1].reason, "");
}

TEST_F(LayerTest, NothingInALayerIsEverChanged) {
  const std::string folder = write_folder("folder", {artifact_});
  const std::string file = files_below(folder)[0];
  testing::write_file(file, "damaged");
  const auto store = make_store({.layers = {folder}});
  EXPECT_FALSE((*store->find(artifact_)).has_value());
  EXPECT_THAT(store->put(share(make_artifact(2))), is_ok());
  EXPECT_EQ(testing::read_file(file), "damaged") << "a layer's damage stays where it is";
  EXPECT_EQ(files_below(folder).size(), 1u);
  EXPECT_EQ(store->stats().quarantined, 0);
  EXPECT_EQ(store->stats().errors, 1);
  EXPECT_THAT(log_, HasSubstr("is passed over"));
}

TEST_F(LayerTest, WhatCannotBeUsedIsSkippedWithAReason) {
  const std::string good = write_pack("good.kpack", {artifact_});
  std::string bytes = testing::read_file(good);
  bytes[8] = 9;
  testing::write_file(dir_ / "old.kpack", bytes);
  ::chmod((dir_ / "old.kpack").c_str(), 0644);
  testing::write_file(dir_ / "foreign.kpack", "PK\x03\x04 something else");
  testing::write_file(dir_ / "cut.kpack", testing::read_file(good).substr(0, 300));
  const std::string open = write_pack("open.kpack", {artifact_});
  ::chmod(open.c_str(), 0666);
  std::filesystem::create_symlink(good, dir_ / "link.kpack");
  const auto store =
      make_store({.layers = {dir_ / "old.kpack", dir_ / "foreign.kpack", dir_ / "cut.kpack", open,
                             dir_ / "link.kpack", dir_ / "none", good}});
  const auto found = *store->find(artifact_);
  ASSERT_TRUE(found);
  EXPECT_TRUE(same_artifact(*found->artifact, artifact_));
  const auto layers = store->layers();
  ASSERT_EQ(layers.size(), 7u);
  const char* reasons[] = {"format version must be 1, got 9",
                           "must begin as a pack does",
                           "must fill the file exactly",
                           "must not be writable",
                           "Too many levels of symbolic links",
                           "No such file",
                           ""};
  for (std::size_t i = 0; i < 7; ++i) {
    if (*reasons[i] != 0) {
      EXPECT_THAT(layers[i].reason, HasSubstr(reasons[i])) << layers[i].path;
    }
    EXPECT_EQ(layers[i].reason.empty(), *reasons[i] == 0) << layers[i].path;
  }
  EXPECT_THAT(log_, HasSubstr("old.kpack is skipped: pack: format version must be 1, got 9"));
}

TEST_F(LayerTest, HostObjectsComeFromFoldersAndSignedPacksOnly) {
  Artifact host = artifact_;
  host.kind = "host_object";
  const SigningKey key = *new_signing_key();
  const std::string pack = write_pack("a.kpack", {host});
  const std::string signed_pack = write_pack("b.kpack", {host}, &key);
  EXPECT_FALSE((*make_store({.layers = {pack}})->find(host)).has_value());
  EXPECT_FALSE((*make_store({.layers = {signed_pack}})->find(host)).has_value())
      << "no key to check it with";
  EXPECT_THAT(log_, HasSubstr("its host objects are not used"));
  const TrustedKeys trusted{true, {public_key(key)}};
  EXPECT_TRUE(
      (*make_store({.layers = {signed_pack}, .trusted_keys = trusted})->find(host)).has_value());
  EXPECT_FALSE((*make_store({.layers = {pack}, .trusted_keys = trusted})->find(host)).has_value());
  const std::string folder = write_folder("folder", {host});
  EXPECT_TRUE((*make_store({.layers = {folder}})->find(host)).has_value());
}

TEST_F(LayerTest, BySourceTheNamedThenTheFirstTierThenTheNewest) {
  const Artifact old = by_compiler(artifact_, "12.8"), young = by_compiler(artifact_, "13.0");
  const Artifact wanted = by_compiler(artifact_, "none");
  const std::string folder = write_folder("folder", {young});
  ASSERT_THAT(make_store({.disk_dir = folder})->put(share(old)), is_ok());
  for (const std::string& file : files_below(folder)) {
    const auto when = std::filesystem::file_time_type::clock::now() -
                      std::chrono::hours(file.find(to_hex(old.key)) != std::string::npos ? 20 : 10);
    std::filesystem::last_write_time(file, when);
  }
  const auto by_source = [&](const StoreOptions& options) {
    const auto found = *make_store(options)->find_by_source(wanted);
    return found ? found->artifact->compiler_fields[1].value : "nothing";
  };
  EXPECT_EQ(by_source({}), "nothing");
  EXPECT_EQ(by_source({.layers = {folder}}), "13.0") << "the newest";
  EXPECT_EQ(by_source({.disk_dir = folder}), "13.0");
  testing::write_file(folder + "/manifest", to_hex(old.key) + "\n");
  EXPECT_EQ(by_source({.layers = {folder}}), "12.8") << "the one the folder names";
  EXPECT_EQ(by_source({.disk_dir = folder, .layers = {write_pack("a.kpack", {old})}}), "12.8")
      << "what a pack names goes before what the disk happens to have";
  const auto store = make_store({});
  ASSERT_THAT(store->put(share(old)), is_ok());
  EXPECT_EQ((*store->find_by_source(wanted))->tier, TierKind::memory);
  Artifact other = wanted;
  other.source_fields[0].value += " ";
  EXPECT_FALSE((*store->find_by_source(other)).has_value());
}

TEST_F(LayerTest, WhetherASourceIsThereIsSeenByNamesAlone) {
  const Artifact other = by_compiler(artifact_, "12.8");
  const auto may_have = [&](const StoreOptions& options) {
    return make_store(options)->may_have_source(artifact_);
  };
  const std::string empty = write_folder("empty", {});
  EXPECT_FALSE(may_have({}));
  EXPECT_FALSE(may_have({.disk_dir = empty, .layers = {empty, write_pack("none.kpack", {})}}));
  EXPECT_TRUE(may_have({.layers = {write_pack("a.kpack", {other})}}));
  const std::string folder = write_folder("folder", {other});
  EXPECT_TRUE(may_have({.layers = {folder}}));
  EXPECT_TRUE(may_have({.disk_dir = folder}));
  for (const std::string& file : files_below(folder)) testing::write_file(file, "no artifact");
  EXPECT_TRUE(may_have({.disk_dir = folder})) << "not read";
  EXPECT_TRUE(may_have({.remote = {.url = "redis://127.0.0.1:1"}})) << "not asked";
  const auto store = make_store({});
  ASSERT_THAT(store->put(share(other)), is_ok());
  EXPECT_TRUE(store->may_have_source(artifact_));
}

}  // namespace
}  // namespace kiln::cache
