#include "cache/pack.h"
#include "tests/support/artifacts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace kiln::cache {
namespace {

SigningKey test_key() {
  SigningKey key;
  for (std::size_t i = 0; i < key.seed.size(); ++i) key.seed[i] = static_cast<unsigned char>(i);
  return key;
}

// Two sources, one of them by two compilers; two tuning records.
PackContents contents() {
  PackContents out;
  for (const int seed : {42, 43})
    out.artifacts.push_back(testing::share(testing::make_artifact(seed)));
  Artifact other = testing::make_artifact(43, 100);
  other.compiler_fields[0].value = "nvrtc, another one";
  other.key.compiler = hash_fields(other.compiler_fields);
  out.artifacts.push_back(testing::share(other));
  out.tuning = {{"norm/a.json", "{\"rows\":4}"}, {"norm/b.json", "{}"}};
  return out;
}

// Packs of this form are in images in the field: they are read for as long as their version is. The
// bytes change only together with the version; KILN_WRITE_GOLDEN=1 writes them anew. An Ed25519
// signature depends on the key and the message alone.
TEST(PackGoldenTest, VersionOne) {
  const std::string path = std::string(KILN_GOLDEN_DIR) + "/pack_v1.kpack";
  const SigningKey key = test_key();
  const auto made = make_pack(contents(), &key);
  ASSERT_THAT(made, testing::is_ok());
  if (std::getenv("KILN_WRITE_GOLDEN") != nullptr) testing::write_file(path, *made);
  const std::string golden = testing::read_file(path);
  EXPECT_EQ(*made, golden) << "the same contents make the same bytes";

  const auto pack =
      Pack::open(std::string_view(golden), {.required = true, .keys = {public_key(key)}});
  ASSERT_THAT(pack, testing::is_ok());
  EXPECT_TRUE((*pack)->is_signed());
  ASSERT_EQ((*pack)->size(), 3u);
  for (const auto& artifact : contents().artifacts) {
    const auto found = (*pack)->find(*artifact);
    ASSERT_THAT(found, testing::is_ok());
    ASSERT_NE(*found, nullptr);
    EXPECT_TRUE(testing::same_artifact(**found, *artifact));
  }
  const auto preferred = (*pack)->find_by_source(testing::make_artifact(43));
  ASSERT_THAT(preferred, testing::is_ok());
  EXPECT_EQ((*preferred)->compiler_fields[0].value, "nvrtc, another one");
  ASSERT_EQ((*pack)->tuning_size(), 2u);
  EXPECT_EQ(*(*pack)->tuning(0), contents().tuning[0]);
  EXPECT_EQ(*(*pack)->tuning(1), contents().tuning[1]);
}

}  // namespace
}  // namespace kiln::cache
