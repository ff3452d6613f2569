#include "jit/engine.h"
#include "tests/jit/jit_test_util.h"

#include <filesystem>
#include <fstream>

namespace kiln::jit {
namespace {

TEST(SourcesTest, ReadsWhatWasAdded) {
  Sources sources;
  ASSERT_TRUE(sources.add({{"a/x.cu", "one"}, {"a/y.cu", "two"}}).ok());
  ASSERT_TRUE(sources.add({{"a/x.cu", "one"}}).ok());  // the same content again is no clash
  EXPECT_EQ(*sources.read("a/x.cu"), "one");
}

TEST(SourcesTest, AnotherContentUnderAKnownNameIsRefusedWhole) {
  Sources sources;
  ASSERT_TRUE(sources.add({{"a/x.cu", "one"}}).ok());
  const absl::Status status = sources.add({{"a/new.cu", "new"}, {"a/x.cu", "other"}});
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_TRUE(contains(status, "'a/x.cu'")) << status;
  EXPECT_TRUE(absl::IsNotFound(sources.read("a/new.cu").status()));
}

TEST(SourcesTest, UnknownNameTellsWhatIsNearby) {
  Sources sources;
  ASSERT_TRUE(
      sources.add({{"norm/layer_norm.cu", "1"}, {"gemm/a.cu", "2"}, {"z", "3"}, {"y", "4"}}).ok());
  const absl::Status status = sources.read("norms/layer_norm.cu").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_TRUE(contains(status, "known nearby: norm/layer_norm.cu")) << status;
  EXPECT_TRUE(contains(Sources().read("a").status(), "none is known"));
}

TEST(SourcesTest, OverrideFolderComesFirstAndIsReadEachTime) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() + "/a");
  Sources sources(folder.path());
  ASSERT_TRUE(sources.add({{"a/x.cu", "embedded"}, {"a/y.cu", "embedded y"}}).ok());
  std::ofstream(folder.path() + "/a/x.cu") << "first";
  EXPECT_EQ(*sources.read("a/x.cu"), "first");
  std::ofstream(folder.path() + "/a/x.cu") << "second";
  EXPECT_EQ(*sources.read("a/x.cu"), "second");
  EXPECT_EQ(*sources.read("a/y.cu"), "embedded y");
  std::filesystem::remove(folder.path() + "/a/x.cu");
  EXPECT_EQ(*sources.read("a/x.cu"), "embedded");
  EXPECT_TRUE(absl::IsInvalidArgument(sources.read("../a/x.cu").status()));
}

}  // namespace
}  // namespace kiln::jit
