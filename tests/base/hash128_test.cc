#include "base/hash128.h"

#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

// These bytes are in file names and keys of caches in the field. They may not change.
TEST(Hash128Test, GoldenValues) {
  EXPECT_EQ(to_hex(hash128("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(to_hex(hash128("a")), "a96faf705af16834e6c632b61e964e1f");
  EXPECT_EQ(to_hex(hash128("abc")), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash128Test, HexGoesThereAndBack) {
  const Hash128 hash{0x0123456789abcdefull, 0xfedcba9876543210ull};
  EXPECT_EQ(to_hex(hash), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(parse_hash128(to_hex(hash)), hash);
}

TEST(Hash128Test, OtherTextIsNoHash) {
  EXPECT_FALSE(parse_hash128(""));
  EXPECT_FALSE(parse_hash128(std::string(31, '0')));
  EXPECT_FALSE(parse_hash128(std::string(33, '0')));
  EXPECT_FALSE(parse_hash128(std::string(31, '0') + "A"));
  EXPECT_FALSE(parse_hash128(std::string(31, '0') + "g"));
  EXPECT_FALSE(parse_hash128("+" + std::string(31, '0')));
}

TEST(Hash128Test, LengthPrefixKeepsListsApart) {
  std::string ab_c, a_bc;
  append_length_prefixed(ab_c, "ab");
  append_length_prefixed(ab_c, "c");
  append_length_prefixed(a_bc, "a");
  append_length_prefixed(a_bc, "bc");
  EXPECT_NE(ab_c, a_bc);
  EXPECT_EQ(ab_c, std::string("\2\0\0\0\0\0\0\0ab\1\0\0\0\0\0\0\0c", 19));
}

}  // namespace
}  // namespace kiln
