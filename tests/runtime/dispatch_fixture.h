#ifndef KILN_TESTS_RUNTIME_DISPATCH_FIXTURE_H_
#define KILN_TESTS_RUNTIME_DISPATCH_FIXTURE_H_

#include "tests/support/status_matchers.h"
#include "tests/support/toy_op.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace kiln::testing {

// What the kernels below have seen.
inline std::atomic<int> refusals_asked{0};
inline std::atomic<int> built{0};

// The base of a small line of classes, as a family would have it.
class ToyWide : public ToyKernel {
 public:
  static Refusal refusal(const ToyCall& call) {
    ++refusals_asked;
    if (call.n < 0) return refuse("serves lengths of at least 0, got ", call.n);
    return serves;
  }
  static Entry<ToyWide> entry_for(const ToyCall& call) { return Entry<ToyWide>(call.dtype); }
  explicit ToyWide(DType) { ++built; }
};

class ToyShort final : public ToyWide {
 public:
  static constexpr auto preferred_over = keys("toy_wide");
  static constexpr auto supported_archs = archs(90);
  static Refusal refusal(const ToyCall& call) {
    if (call.n > 256) return refuse("serves lengths of at most 256, got ", call.n);
    return ToyWide::refusal(call);
  }
  static Entry<ToyShort> entry_for(const ToyCall& call) { return Entry<ToyShort>(call.n); }
  explicit ToyShort(std::int64_t) : ToyWide(DType::float32) {}
};

class ToyGeneral final : public ToyKernel {
 public:
  static constexpr bool general = true;
  explicit ToyGeneral(const ToyCall&) {}
};

inline ToyCall at(std::int64_t n, int index = 0) {
  return {.n = n, .where = {Device{DeviceType::cpu(), static_cast<std::uint8_t>(index)}}};
}
inline ToyCall stating(std::int64_t n, int arch) {
  ToyCall call = at(n);
  call.where.arch = arch;
  return call;
}

class DispatchTest : public ::testing::Test {
 protected:
  DispatchTest() {
    EXPECT_THAT(toy.failed, is_ok());
    EXPECT_THAT(toy.add<ToyWide>("toy_wide"), is_ok());
    EXPECT_THAT(toy.add<ToyShort>("toy_short"), is_ok());
    EXPECT_THAT(toy.add<ToyGeneral>("toy_general"), is_ok());
    auto made = toy.op();
    EXPECT_THAT(made, is_ok());
    op = *std::move(made);
    refusals_asked = 0;
    built = 0;
  }
  const ToyFwdInterface* entry(const ToyCall& call) {
    auto found = op->kernel_for<ToyFwdInterface>(call);
    EXPECT_THAT(found, is_ok());
    return found.ok() ? *found : nullptr;
  }
  ToyRuntime toy;
  std::unique_ptr<ToyFwdOp> op;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_RUNTIME_DISPATCH_FIXTURE_H_
