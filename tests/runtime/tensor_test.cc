#include <kiln/tensor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace kiln {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(DimsTest, MoreThanTheLargestRankIsRefused) {
  const std::vector<std::int64_t> eight(8, 2);
  const std::vector<std::int64_t> nine(9, 2);
  EXPECT_EQ(Dims::from(eight)->size(), 8);
  EXPECT_THAT(message_of(Dims::from(nine).status()), HasSubstr("got 9"));
}

TEST(DimsTest, Text) {
  EXPECT_EQ(to_string(Dims{}), "[]");
  EXPECT_EQ(to_string(Dims{8192, 4096}), "[8192, 4096]");
  EXPECT_EQ(to_string(Dims{-1}), "[-1]");
}

TEST(ShapeTest, StridesOfAContiguousTensor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 1, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Dims{});
}

TEST(ShapeTest, ElementsAreCountedWithoutOverflow) {
  EXPECT_EQ(*checked_numel({}), 1);
  EXPECT_EQ(*checked_numel({3, 5}), 15);
  EXPECT_EQ(*checked_numel({kMax}), kMax);
  EXPECT_EQ(*checked_numel({1LL << 31, 1LL << 31}), 1LL << 62);
  // Empty, whatever the other extents are and in whichever order.
  EXPECT_EQ(*checked_numel({0, kMax, kMax}), 0);
  EXPECT_EQ(*checked_numel({kMax, kMax, 0}), 0);
}

TEST(ShapeTest, OverflowAndNegativeExtentsAreRefused) {
  for (const Dims& shape : {Dims{1LL << 32, 1LL << 31}, Dims{kMax, 2}, Dims{2, -1}, Dims{0, -1}}) {
    const absl::Status status = checked_numel(shape).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(message_of(status), HasSubstr(to_string(shape)));
  }
}

TEST(TensorTest, SpecText) {
  const TensorSpec spec{{DeviceType::cuda(), 1}, DType::float16, {8192, 4096}};
  EXPECT_EQ(to_string(spec), "float16[8192, 4096] on cuda:1");
}

TEST(TensorTest, Contiguity) {
  Tensor tensor = Tensor::contiguous(nullptr, {}, DType::float32, {2, 3, 4});
  EXPECT_TRUE(tensor.is_contiguous());
  tensor.strides = {16, 4, 1};  // a gap after each matrix
  EXPECT_FALSE(tensor.is_contiguous());
  tensor.strides = {1, 2, 6};  // column-major
  EXPECT_FALSE(tensor.is_contiguous());
  tensor.shape = {1, 3, 4};
  tensor.strides = {999, 4, 1};  // nobody steps along an extent of 1
  EXPECT_TRUE(tensor.is_contiguous());
  tensor.shape = {2, 0, 4};
  tensor.strides = {7, 7, 7};  // nothing there
  EXPECT_TRUE(tensor.is_contiguous());
  tensor.strides = {1};  // not as many as dimensions
  EXPECT_FALSE(tensor.is_contiguous());
  EXPECT_TRUE(Tensor::contiguous(nullptr, {}, DType::float32, {}).is_contiguous());
}

TEST(TensorTest, Alignment) {
  const auto at = [](std::uintptr_t address) {
    Tensor tensor;
    tensor.data = reinterpret_cast<void*>(address);
    return tensor.alignment();
  };
  EXPECT_EQ(at(0), 16);
  EXPECT_EQ(at(1024), 16);
  EXPECT_EQ(at(1024 + 8), 8);
  EXPECT_EQ(at(1024 + 6), 2);
  EXPECT_EQ(at(1025), 1);
}

}  // namespace
}  // namespace kiln
