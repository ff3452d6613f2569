// Scratch memory of an op: whose it is, and that captured graphs keep theirs.
#include "runtime/op_scratch.h"

#include "tests/support/status_matchers.h"
#include "tests/support/toy_op.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>

namespace kiln::internal {
namespace {

using testing::is_ok;

// Host memory whose streams capture by number.
class CapturingSupport : public testing::ToySupport {
 public:
  CapturingSupport() : ToySupport({DeviceFacts{}}, *DeviceType::named("scratchtoy")) {}
  absl::StatusOr<std::uint64_t> capture_id(const Stream&) override { return capture.load(); }
  absl::StatusOr<void*> allocate(const Stream& stream, std::size_t bytes) override {
    ++allocated;
    return ToySupport::allocate(stream, bytes);
  }
  absl::Status free(const Stream& stream, void* data) override {
    ++freed;
    return ToySupport::free(stream, data);
  }
  std::atomic<std::uint64_t> capture{0};
  std::atomic<int> allocated{0}, freed{0};
};

class OpScratchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Registry registry("scratch");
    registry.register_device_support(support_);
    ASSERT_THAT(runtime_.commit(std::move(registry)), is_ok());
  }
  Stream stream(int number) {
    return {{support_->type(), 0}, &streams_[static_cast<std::size_t>(number)]};
  }

  const std::shared_ptr<CapturingSupport> support_ = std::make_shared<CapturingSupport>();
  Runtime runtime_{{.load_installed_backends = false}};
  std::array<char, 4> streams_{};
};

TEST_F(OpScratchTest, AStreamHasTheSameUntilItNeedsMore) {
  OpScratch scratch(runtime_);
  void* const small = *scratch.get(stream(0), 64);
  EXPECT_EQ(*scratch.get(stream(0), 64), small);
  EXPECT_EQ(*scratch.get(stream(0), 1), small);
  EXPECT_NE(*scratch.get(stream(1), 64), small);
  void* const large = *scratch.get(stream(0), 65);
  EXPECT_NE(large, small);  // the old one is kept: a graph may name it
  EXPECT_EQ(*scratch.get(stream(0), 64), large);
  EXPECT_EQ(support_->freed, 0);
}

TEST_F(OpScratchTest, ACaptureHasItsOwn) {
  OpScratch scratch(runtime_);
  void* const calls = *scratch.get(stream(0), 64);
  support_->capture = 7;
  void* const first = *scratch.get(stream(0), 64);
  EXPECT_EQ(*scratch.get(stream(0), 64), first);
  support_->capture = 8;
  void* const second = *scratch.get(stream(0), 64);
  support_->capture = 0;
  EXPECT_EQ(*scratch.get(stream(0), 64), calls);
  EXPECT_NE(first, calls);
  EXPECT_NE(second, calls);
  EXPECT_NE(second, first);
}

TEST_F(OpScratchTest, AllIsFreedWithTheOp) {
  {
    OpScratch scratch(runtime_);
    for (const int number : {0, 1, 2}) ASSERT_THAT(scratch.get(stream(number), 8), is_ok());
    ASSERT_THAT(scratch.get(stream(1), 80), is_ok());
  }
  EXPECT_EQ(support_->allocated, 4);
  EXPECT_EQ(support_->freed, 4);
}

TEST_F(OpScratchTest, ADeviceThatIsNotThereIsAnError) {
  OpScratch scratch(runtime_);
  EXPECT_FALSE(scratch.get({{*DeviceType::named("nowhere"), 0}, nullptr}, 8).ok());
}

}  // namespace
}  // namespace kiln::internal
