#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/child.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <string>
#include <vector>

namespace kiln::cache {
namespace {

using testing::Child;
using testing::files_below;
using testing::is_ok;
using testing::make_artifact;
using testing::share;

// Guards: N processes compile the same thing N times.
TEST(ProcessesTest, ManyProcessesAndThreadsBuildAKeyOnce) {
  for (int round = 0; round < 3; ++round) {
    testing::TempDir dir;
    std::vector<Child> children;
    for (int i = 0; i < 6; ++i)
      children.emplace_back(
          std::vector<std::string>{KILN_TEST_HELPER, "build", dir.path(), "1", "3"});
    int built = 0;
    for (Child& child : children) {
      built += std::stoi(child.read_line());
      EXPECT_EQ(child.wait(), 0);
    }
    EXPECT_EQ(built, 1);
    EXPECT_EQ(files_below(dir.path()).size(), 1u) << "no lease and no temporary file is left";
  }
}

// Guards: a builder that dies leaves a half file, which every later run trips over.
TEST(ProcessesTest, AWriterKilledAtAnyMomentLeavesNoTornFile) {
  testing::TempDir dir;
  for (int round = 0; round < 15; ++round) {
    Child child({KILN_TEST_HELPER, "write", dir.path(), "0", "4"});
    ASSERT_EQ(child.read_line(), "writing");
    absl::SleepFor(absl::Microseconds(700 * round));
    child.send(SIGKILL);
    child.wait();
    const auto store = make_store({.disk_dir = dir.path()});
    for (int i = 0; i < 4; ++i) {
      const auto found = *store->find(make_artifact(i));
      if (found) {
        EXPECT_EQ(found->artifact->image, make_artifact(i, 20000).image);
      }
    }
    EXPECT_EQ(store->stats().quarantined, 0);
    EXPECT_EQ(store->stats().errors, 0);
  }
}

// Guards: reading back a file that another rank just replaced fails.
TEST(ProcessesTest, ReadersBesideWritersSeeWholeArtifactsAlways) {
  testing::TempDir dir;
  ASSERT_THAT(make_store({.disk_dir = dir.path()})->put(share(make_artifact(0, 20000))), is_ok());
  std::vector<Child> writers;
  for (int i = 0; i < 2; ++i)
    writers.emplace_back(std::vector<std::string>{KILN_TEST_HELPER, "write", dir.path(), "0", "1"});
  for (Child& writer : writers) ASSERT_EQ(writer.read_line(), "writing");
  for (int i = 0; i < 300; ++i) {
    const auto store = make_store({.disk_dir = dir.path()});
    ASSERT_TRUE((*store->find(make_artifact(0))).has_value()) << i;
    ASSERT_EQ(store->stats().quarantined, 0);
  }
}

}  // namespace
}  // namespace kiln::cache
