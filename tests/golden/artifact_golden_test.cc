#include "cache/artifact.h"
#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace kiln::cache {
namespace {

// Files of this form are in caches in the field. The bytes change only together with the format
// version, and an old golden file stays for as long as its version is read. KILN_WRITE_GOLDEN=1
// writes it anew.
TEST(ArtifactGoldenTest, VersionOne) {
  const std::string path = std::string(KILN_GOLDEN_DIR) + "/artifact_v1.kiln";
  // 64 bytes that do not compress: zstd stores them, so that no release of zstd makes other bytes
  // of them.
  const Artifact artifact = testing::make_artifact(42);
  if (std::getenv("KILN_WRITE_GOLDEN") != nullptr) testing::write_file(path, serialize(artifact));
  const std::string golden = testing::read_file(path);
  const auto parsed = parse_artifact(golden);
  ASSERT_THAT(parsed, testing::is_ok());
  EXPECT_TRUE(testing::same_artifact(*parsed, artifact));
  EXPECT_EQ(serialize(artifact), golden);
  EXPECT_EQ(to_hex(artifact.key),
            "4c1c38b2568908842098e725fe1485e5c3141c6df98a05938883d885e3315fe3");
}

}  // namespace
}  // namespace kiln::cache
