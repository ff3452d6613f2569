#include "base/printable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PrintableTest, TextIsLeftAsItIs) {
  for (const std::string text : {"", "a\tb\nc", "Größe 4096 × 日本 😀"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(shortened(text), text);
  }
}

TEST(PrintableTest, WhatCommandsATerminalIsNamed) {
  EXPECT_EQ(printable("a\x1b[31mb\rc\x7f"), "a\\x1b[31mb\\x0dc\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "the escape of one character, in UTF-8";
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "and as one byte";
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(PrintableTest, BytesThatAreNoTextAreNamed) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xe6\x97"), "\\xe6\\x97") << "a character that is cut off";
  EXPECT_EQ(printable("\xe6x"), "\\xe6x");
}

TEST(PrintableTest, ALongLineLosesItsMiddle) {
  const std::string text = "got " + std::string(1 << 20, 'x') + "; there is y\nnext";
  const std::string cut = shortened(text);
  EXPECT_LT(cut.size(), kLongestLine + 100);
  EXPECT_THAT(cut, StartsWith("got xxx"));
  EXPECT_THAT(cut, HasSubstr("bytes left out"));
  EXPECT_THAT(cut, EndsWith("xx; there is y\nnext"));
}

TEST(PrintableTest, NoCharacterIsCutInTwo) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "日";
  for (std::size_t longest = 20; longest < 40; ++longest) {
    const std::string cut = shortened(text, longest);
    EXPECT_EQ(printable(cut), cut);
  }
}

}  // namespace
}  // namespace kiln
