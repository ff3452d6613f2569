#include "cache/artifact.h"

#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kiln::cache {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::make_artifact;
using testing::same_artifact;
using testing::status_is;

// `body` between magic and checksum, with a right checksum: what only a careful forger or a newer
// version writes.
std::string sealed(const std::string& body) {
  std::string out = serialize(make_artifact(1)).substr(0, 8) + body;
  const Hash128 hash = hash128(out);
  for (const std::uint64_t half : {hash.high, hash.low}) {
    for (int i = 0; i < 64; i += 8) out += static_cast<char>(half >> i & 255);
  }
  return out;
}

std::string body_of(const Artifact& artifact) {
  const std::string file = serialize(artifact);
  return file.substr(8, file.size() - 24);
}

TEST(ArtifactTest, GoesThereAndBack) {
  for (const std::size_t size : {0, 1, 64, 100000}) {
    Artifact artifact = make_artifact(7, size);
    const auto back = parse_artifact(serialize(artifact));
    ASSERT_THAT(back, is_ok());
    EXPECT_TRUE(same_artifact(*back, artifact)) << size;
  }
  const auto empty = parse_artifact(serialize(Artifact{}));
  ASSERT_THAT(empty, is_ok());
  EXPECT_TRUE(same_artifact(*empty, Artifact{}));
}

TEST(ArtifactTest, SameArtifactSameBytes) {
  EXPECT_EQ(serialize(make_artifact(3, 70000)), serialize(make_artifact(3, 70000)));
  EXPECT_NE(serialize(make_artifact(3)), serialize(make_artifact(4)));
}

TEST(ArtifactTest, CutAtEveryLengthIsDataLoss) {
  const std::string file = serialize(make_artifact(1));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(parse_artifact(std::string(file, 0, size)), status_is(absl::StatusCode::kDataLoss))
        << size;
  }
  EXPECT_THAT(parse_artifact(file + '\0'), status_is(absl::StatusCode::kDataLoss));
}

TEST(ArtifactTest, EveryFlippedBitIsDataLoss) {
  const std::string file = serialize(make_artifact(1));
  for (std::size_t i = 0; i < file.size() * 8; ++i) {
    std::string bad = file;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    EXPECT_THAT(parse_artifact(bad), status_is(absl::StatusCode::kDataLoss)) << i;
  }
}

// The parser must hold by itself: here the checksum is right and everything else may be wrong.
TEST(ArtifactTest, DamageUnderARightChecksumNeverCrashesNorPassesForTheOriginal) {
  const Artifact original = make_artifact(1);
  const std::string body = body_of(original);
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(parse_artifact(sealed(body.substr(0, size))).ok()) << size;
  }
  // zstd ignores a bit of its frame's header: inside the payload damage only must not crash.
  const std::size_t payload = body.find("\x28\xb5\x2f\xfd");
  ASSERT_NE(payload, std::string::npos);
  for (std::size_t i = 0; i < body.size() * 8; ++i) {
    std::string bad = body;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    const auto parsed = parse_artifact(sealed(bad));
    EXPECT_FALSE(i / 8 < payload && parsed.ok() && same_artifact(*parsed, original)) << i;
  }
  EXPECT_THAT(parse_artifact(sealed(body + "x")), status_is(absl::StatusCode::kDataLoss));
}

TEST(ArtifactTest, AnotherVersionIsToldFromDamage) {
  std::string body = body_of(make_artifact(1));
  body[0] = 2;
  EXPECT_THAT(parse_artifact(sealed(body)),
              status_is(absl::StatusCode::kFailedPrecondition, HasSubstr("must be 1, got 2")));
}

TEST(ArtifactTest, AHugeStatedSizeTakesNoMemory) {
  const Artifact original = make_artifact(1);
  const std::string body = body_of(original);
  for (std::size_t at = 0; at + 8 <= body.size(); ++at) {
    std::string bad = body;
    bad.replace(at, 8, 8, '\xff');
    const auto parsed = parse_artifact(sealed(bad));
    EXPECT_FALSE(parsed.ok() && same_artifact(*parsed, original)) << at;
  }
}

TEST(ArtifactTest, ForeignFilesAreDataLoss) {
  for (const std::string& text : {std::string(), std::string(4096, '\0'),
                                  std::string("\x7f"
                                              "ELF") +
                                      std::string(500, 'x'),
                                  std::string("{\"json\": true}"), std::string(28, '\xff')}) {
    EXPECT_THAT(parse_artifact(text), status_is(absl::StatusCode::kDataLoss));
  }
}

TEST(ArtifactTest, FieldsThatConcatenateAlikeHashApart) {
  EXPECT_NE(hash_fields({{"a", "bc"}}), hash_fields({{"ab", "c"}}));
  EXPECT_NE(hash_fields({{"a", ""}, {"b", ""}}), hash_fields({{"b", ""}, {"a", ""}}));
  EXPECT_NE(hash_fields({}), hash_fields({{"", ""}}));
}

TEST(ArtifactTest, KeysGoThereAndBackAsHex) {
  const CompileKey key = make_artifact(5).key;
  EXPECT_EQ(to_hex(key).size(), 64u);
  EXPECT_EQ(parse_compile_key(to_hex(key)), key);
  EXPECT_FALSE(parse_compile_key(to_hex(key).substr(1)));
  EXPECT_FALSE(parse_compile_key("../" + to_hex(key).substr(3)));
}

}  // namespace
}  // namespace kiln::cache
