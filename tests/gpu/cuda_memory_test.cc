#include "tests/gpu/cuda_fixture.h"

#include <limits>
#include <numeric>

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::is_ok;
using testing::status_is;

class CudaMemoryTest : public CudaTest {};

TEST_F(CudaMemoryTest, BytesGoThereAndBackOnEveryKindOfStream) {
  const Stream own = *support_->create_stream(0);
  Stream per_thread = stream_;
  per_thread.handle = CU_STREAM_PER_THREAD;
  for (const Stream& stream : {stream_, own, per_thread}) {
    std::vector<int> sent(1000);
    std::iota(sent.begin(), sent.end(), 7);
    const std::size_t bytes = sent.size() * sizeof(int);
    std::vector<int> received(sent.size());
    const auto first = support_->allocate(stream, bytes);
    const auto second = support_->allocate(stream, bytes);
    ASSERT_THAT(first, is_ok());
    ASSERT_THAT(second, is_ok());
    EXPECT_THAT(support_->copy_to_device(stream, *first, sent.data(), bytes), is_ok());
    EXPECT_THAT(support_->copy_on_device(stream, *second, *first, bytes), is_ok());
    EXPECT_THAT(support_->copy_to_host(stream, received.data(), *second, bytes), is_ok());
    EXPECT_THAT(support_->synchronize(stream), is_ok());
    EXPECT_EQ(received, sent);
    EXPECT_THAT(support_->fill(stream, *second, 0xAB, bytes), is_ok());
    EXPECT_THAT(support_->copy_to_host(stream, received.data(), *second, bytes), is_ok());
    EXPECT_THAT(support_->synchronize(stream), is_ok());
    EXPECT_THAT(received, Each(static_cast<int>(0xABABABAB)));
    EXPECT_THAT(support_->free(stream, *first), is_ok());
    EXPECT_THAT(support_->free(stream, *second), is_ok());
  }
  EXPECT_THAT(support_->destroy_stream(own), is_ok());
}

TEST_F(CudaMemoryTest, ZeroBytesAreAllowedEverywhere) {
  const auto nothing = support_->allocate(stream_, 0);
  ASSERT_THAT(nothing, is_ok());
  EXPECT_EQ(*nothing, nullptr);
  EXPECT_THAT(support_->copy_to_device(stream_, nullptr, nullptr, 0), is_ok());
  EXPECT_THAT(support_->copy_to_host(stream_, nullptr, nullptr, 0), is_ok());
  EXPECT_THAT(support_->copy_on_device(stream_, nullptr, nullptr, 0), is_ok());
  EXPECT_THAT(support_->fill(stream_, nullptr, 1, 0), is_ok());
  EXPECT_THAT(support_->free(stream_, nullptr), is_ok());
}

TEST_F(CudaMemoryTest, TooMuchIsRefusedWithTheBytesWantedAndFree) {
  const std::size_t wanted = std::size_t{1} << 46;  // 64 TiB
  EXPECT_THAT(support_->allocate(stream_, wanted),
              status_is(absl::StatusCode::kResourceExhausted,
                        AllOf(HasSubstr(std::to_string(wanted)), HasSubstr("bytes are free"),
                              HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"))));
  int* data = make_int(5);  // and the device goes on
  EXPECT_EQ(read_int(data), 5);
  EXPECT_THAT(support_->free(stream_, data), is_ok());
}

}  // namespace
}  // namespace kiln
