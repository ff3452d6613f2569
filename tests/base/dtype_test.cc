#include <kiln/dtype.h>

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(DtypeTest, NamesGoThereAndBack) {
  for (int i = 1; i <= 12; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype) << i;
    EXPECT_GT(size_of(dtype), 0) << i;
  }
  EXPECT_EQ(to_string(DType::boolean), "bool");
  EXPECT_EQ(to_string(static_cast<DType>(0)), "invalid");
  EXPECT_EQ(size_of(static_cast<DType>(13)), 0);
  for (const char* text : {"", "invalid", "Float16", "float", "float16 ", "boolean"}) {
    EXPECT_FALSE(parse_dtype(text)) << text;
  }
}

}  // namespace
}  // namespace kiln
