#include "cache/pack.h"

#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kiln::cache {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::make_artifact;
using testing::same_artifact;
using testing::share;
using testing::status_is;

const TrustedKeys kNobody;

// `artifact` as another compiler would have made it.
Artifact by_compiler(Artifact artifact, const std::string& build) {
  artifact.compiler_fields = {{"compiler", "nvrtc"}, {"build", build}};
  artifact.key.compiler = hash_fields(artifact.compiler_fields);
  artifact.image += build;
  return artifact;
}

PackContents contents(int count) {
  PackContents out;
  for (int i = 0; i < count; ++i) out.artifacts.push_back(share(make_artifact(i, 200)));
  out.tuning = {{"layer_norm/h200", R"({"winner":3})"}, {"layer_norm/a100", R"({"winner":1})"}};
  return out;
}

TEST(PackTest, HoldsWhatWasPutIn) {
  const std::string bytes = *make_pack(contents(20));
  const auto pack = Pack::open(bytes, kNobody);
  ASSERT_THAT(pack, is_ok());
  EXPECT_EQ((*pack)->size(), 20u);
  for (int i = 0; i < 20; ++i) {
    const auto found = (*pack)->find(make_artifact(i));
    ASSERT_THAT(found, is_ok());
    ASSERT_NE(*found, nullptr) << i;
    EXPECT_TRUE(same_artifact(**found, make_artifact(i, 200)));
  }
  EXPECT_EQ(*(*pack)->find(make_artifact(20)), nullptr);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ((*pack)->artifact(i)->key, (*pack)->key(i));
  ASSERT_EQ((*pack)->tuning_size(), 2u);
  EXPECT_EQ((*pack)->tuning(0)->first, "layer_norm/a100");
  EXPECT_EQ((*pack)->tuning(1)->second, R"({"winner":3})");
}

TEST(PackTest, AnEmptyPackIsAPack) {
  const std::string bytes = *make_pack({});
  const auto pack = Pack::open(bytes, kNobody);
  ASSERT_THAT(pack, is_ok());
  EXPECT_EQ((*pack)->size(), 0u);
  EXPECT_EQ(*(*pack)->find(make_artifact(0)), nullptr);
}

TEST(PackTest, SameContentsSameBytesInAnyOrder) {
  PackContents shuffled = contents(20);
  std::reverse(shuffled.artifacts.begin(), shuffled.artifacts.end());
  std::reverse(shuffled.tuning.begin(), shuffled.tuning.end());
  shuffled.artifacts.push_back(share(make_artifact(3, 200)));
  EXPECT_EQ(*make_pack(contents(20)), *make_pack(std::move(shuffled)));
  EXPECT_NE(*make_pack(contents(20)), *make_pack(contents(19)));
}

TEST(PackTest, SharedSourcesAreKeptOnce) {
  PackContents many;
  const std::string header(100000, 'h');
  for (int i = 0; i < 10; ++i) {
    Artifact artifact = make_artifact(i);
    artifact.source_fields.push_back({"header device/common.cuh", header});
    artifact.key.source = hash_fields(artifact.source_fields);
    many.artifacts.push_back(share(std::move(artifact)));
  }
  EXPECT_LT(make_pack(std::move(many))->size(), 120000u);
}

TEST(PackTest, TwoArtifactsOfOneKeyAreRefused) {
  Artifact other = make_artifact(1, 200);
  other.image += "x";
  PackContents two = contents(3);
  two.artifacts.push_back(share(other));
  EXPECT_THAT(make_pack(std::move(two)),
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("two that differ")));
}

TEST(PackTest, CutAtEveryLengthIsRefused) {
  const std::string bytes = *make_pack(contents(3));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Pack::open(std::string_view(bytes).substr(0, size), kNobody).ok()) << size;
  }
  EXPECT_FALSE(Pack::open(bytes + "x", kNobody).ok());
}

TEST(PackTest, EveryFlippedBitIsFoundAtOpenOrAtTheFirstUse) {
  const std::string bytes = *make_pack(contents(3));
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string bad = bytes;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    const auto pack = Pack::open(bad, kNobody);
    if (!pack.ok()) continue;
    bool all_right = true;
    for (int seed = 0; seed < 3; ++seed) {
      const auto found = (*pack)->find(make_artifact(seed));
      all_right &= found.ok() && *found != nullptr;
      // Whatever is served is right.
      if (found.ok() && *found != nullptr) {
        EXPECT_TRUE(same_artifact(**found, make_artifact(seed, 200))) << i;
      }
    }
    for (std::size_t j = 0; j < 2; ++j) all_right &= (*pack)->tuning(j).ok();
    EXPECT_FALSE(all_right) << "bit " << i << " changed and nobody saw it";
  }
}

TEST(PackTest, AnotherVersionIsToldFromDamage) {
  std::string bytes = *make_pack(contents(1));
  bytes[8] = 2;
  EXPECT_THAT(Pack::open(bytes, kNobody),
              status_is(absl::StatusCode::kFailedPrecondition, HasSubstr("must be 1, got 2")));
}

TEST(PackTest, TheSourceAloneFindsTheArtifactOfTheLastCompiler) {
  const Artifact base = make_artifact(1);
  PackContents two;
  two.artifacts = {share(by_compiler(base, "13.0.88")), share(by_compiler(base, "12.8.93"))};
  const std::string bytes = *make_pack(std::move(two));
  const auto pack = Pack::open(bytes, kNobody);
  EXPECT_EQ(*(*pack)->find(by_compiler(base, "13.1")), nullptr);
  const auto found = *(*pack)->find_by_source(by_compiler(base, "13.1"));
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(same_artifact(*found, by_compiler(base, "13.0.88")));
  EXPECT_EQ(*(*pack)->find_by_source(make_artifact(2)), nullptr);
}

TEST(PackTest, OtherFieldsUnderAKnownKeyAreAMiss) {
  const std::string bytes = *make_pack(contents(1));
  Artifact wanted = make_artifact(0);
  wanted.source_fields[0].value += " ";  // a collision of hashes, as it were
  const auto pack = Pack::open(bytes, kNobody);
  EXPECT_EQ(*(*pack)->find(wanted), nullptr);
  EXPECT_EQ(*(*pack)->find_by_source(wanted), nullptr);
}

class SignedPackTest : public ::testing::Test {
 protected:
  static TrustedKeys trusting(const SigningKey& key) { return {true, {public_key(key)}}; }
  const SigningKey key_ = *new_signing_key();
  const std::string bytes_ = *make_pack(contents(3), &key_);
};

TEST_F(SignedPackTest, ItsKeyOpensIt) {
  const auto pack = Pack::open(bytes_, trusting(key_));
  ASSERT_THAT(pack, is_ok());
  EXPECT_TRUE((*pack)->is_signed());
  EXPECT_TRUE(same_artifact(**(*pack)->find(make_artifact(1)), make_artifact(1, 200)));
  EXPECT_FALSE((*Pack::open(bytes_, kNobody))->is_signed()) << "nobody vouches for the key";
  EXPECT_EQ(bytes_, *make_pack(contents(3), &key_)) << "a signature too is the same each time";
}

TEST_F(SignedPackTest, UnsignedOrWronglySignedIsRefused) {
  const TrustedKeys trusted = trusting(key_);
  EXPECT_THAT(Pack::open(*make_pack(contents(3)), trusted),
              status_is(absl::StatusCode::kPermissionDenied,
                        HasSubstr("must be signed by a trusted key, got none")));
  const SigningKey other = *new_signing_key();
  EXPECT_THAT(Pack::open(*make_pack(contents(3), &other), trusted),
              status_is(absl::StatusCode::kPermissionDenied,
                        HasSubstr("got one by " + to_hex(public_key(other)))));
  // The head of another pack under this one's signature.
  const std::string another = *make_pack(contents(4), &other);
  const std::string forged =
      another.substr(0, another.size() - 96) + bytes_.substr(bytes_.size() - 96);
  EXPECT_THAT(Pack::open(forged, trusted), status_is(absl::StatusCode::kPermissionDenied,
                                                     HasSubstr("must be right, got a wrong one")));
  EXPECT_THAT(Pack::open(bytes_, {.required = true}),
              status_is(absl::StatusCode::kPermissionDenied));
}

// A forger can make every checksum right; digests under the signature he cannot.
TEST_F(SignedPackTest, NoChangedByteIsServed) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    std::string bad = bytes_;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    const auto pack = Pack::open(bad, trusting(key_));
    if (!pack.ok()) continue;
    for (int seed = 0; seed < 3; ++seed) {
      const auto found = (*pack)->find(make_artifact(seed));
      if (found.ok() && *found != nullptr) {
        EXPECT_TRUE(same_artifact(**found, make_artifact(seed, 200))) << i;
      }
    }
  }
}

TEST(SignatureTest, KeysGoThereAndBackAsHex) {
  const SigningKey key = *new_signing_key();
  EXPECT_EQ(to_hex(public_key(*parse_signing_key(to_hex(key) + "\n"))), to_hex(public_key(key)));
  EXPECT_EQ(*parse_public_key(to_hex(public_key(key))), public_key(key));
  const std::string secret = to_hex(key);
  const auto bad = parse_signing_key(secret.substr(1));
  EXPECT_THAT(bad,
              status_is(absl::StatusCode::kInvalidArgument, HasSubstr("must be 64 hex digits")));
  EXPECT_THAT(std::string(bad.status().message()), ::testing::Not(HasSubstr(secret.substr(1, 8))));
}

TEST(SignatureTest, AListThatCannotBeReadTrustsNobody) {
  EXPECT_FALSE(parse_trusted_keys("").required);
  const TrustedKeys bad = parse_trusted_keys("nonsense");
  EXPECT_TRUE(bad.required);
  EXPECT_TRUE(bad.keys.empty());
  const std::string key = to_hex(public_key(*new_signing_key()));
  EXPECT_EQ(parse_trusted_keys(key + "," + key).keys.size(), 2u);
}

}  // namespace
}  // namespace kiln::cache
