#include <kiln/any_call.h>
#include <kiln/identity.h>
#include <kiln/kernel.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kiln {
namespace {

enum class Mode : std::uint8_t { plain = 0, fused = 3 };

struct WideCall {
  std::int64_t n = 0;
  double eps = 1e-5;
  DType dtype = DType::float16;
  bool causal = false;
  Mode mode = Mode::plain;
  Dims shape;
  std::int32_t align = 16;
  KILN_CALL_SPEC(WideCall, n, eps, dtype, causal, mode, shape, align)
};

class AnyKernel : public Kernel {
 public:
  explicit AnyKernel(const WideCall&) {}
  AnyKernel(std::int64_t, double) {}
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
};

TEST(CallSpecTest, EachFieldIsPartOfEqualityWordsAndIdentity) {
  const WideCall base{.n = 4, .shape = {2, 3}};
  std::vector<WideCall> changed(7, base);
  changed[0].n = 5;
  changed[1].eps = 1e-6;
  changed[2].dtype = DType::bfloat16;
  changed[3].causal = true;
  changed[4].mode = Mode::fused;
  changed[5].shape = {3, 2};
  changed[6].align = 8;
  EXPECT_EQ(base, WideCall(base));
  EXPECT_EQ(to_words(base), to_words(WideCall(base)));
  for (const WideCall& other : changed) {
    EXPECT_FALSE(base == other);
    EXPECT_NE(to_words(base), to_words(other));
    EXPECT_FALSE(Entry<AnyKernel>(base).identity() == Entry<AnyKernel>(other).identity());
    EXPECT_NE(Entry<AnyKernel>(base).identity().hash(), Entry<AnyKernel>(other).identity().hash());
  }
}

TEST(CallSpecTest, TheDeviceIsPartOfTheKeyButNotOfTheIdentity) {
  const WideCall base{.n = 4};
  WideCall other = base;
  other.where.device.index = 1;
  EXPECT_FALSE(base == other);
  EXPECT_NE(to_words(base), to_words(other));
  EXPECT_EQ(Entry<AnyKernel>(base).identity(), Entry<AnyKernel>(other).identity());
}

TEST(CallSpecTest, FloatingFieldsCompareByTheirBits) {
  WideCall plus{.eps = 0.0}, minus{.eps = -0.0};
  EXPECT_FALSE(plus == minus);
  WideCall nan{.eps = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_TRUE(nan == WideCall(nan));
}

TEST(CallSpecTest, TheHashOfAnIdentityIsStableAcrossProcessesAndMachines) {
  // Written down once: a change means that every cache of every user is rebuilt.
  EXPECT_EQ(Entry<AnyKernel>(std::int64_t{4096}, 1e-5).identity().hash(),
            "92a72ea7b1db8e2114be455409512079");
  EXPECT_EQ(Entry<AnyKernel>(std::int64_t{4096}, 1e-5).identity().text(), "(4096, 1e-05)");
}

TEST(CallSpecTest, TextLeavesOutWhatNobodySet) {
  EXPECT_EQ(to_string(CallRef(WideCall{.n = 7, .dtype = DType::bfloat16})),
            "WideCall n=7 dtype=bfloat16 on cuda:0");
  EXPECT_EQ(to_string(CallRef(WideCall{.shape = {2, 3}})), "WideCall shape=[2, 3] on cuda:0");
}

TEST(CallSpecTest, FieldsAreSetByNameFromValues) {
  WideCall call;
  const CallSpecType& type = call_spec_type<WideCall>();
  EXPECT_TRUE(type.set(&call, "n", FieldValue(std::int64_t{9})));
  EXPECT_TRUE(type.set(&call, "dtype", FieldValue(std::string("float32"))));
  EXPECT_TRUE(type.set(&call, "shape", FieldValue(std::vector<std::int64_t>{1, 2})));
  EXPECT_FALSE(type.set(&call, "dtype", FieldValue(std::string("float99"))));
  EXPECT_FALSE(type.set(&call, "align", FieldValue(std::int64_t{1} << 40))) << "does not fit";
  EXPECT_FALSE(type.set(&call, "no_such_field", FieldValue(true)));
  EXPECT_EQ(call, (WideCall{.n = 9, .dtype = DType::float32, .shape = {1, 2}}));
}

TEST(CallSpecTest, AnyCallKeepsAValueAndMovesItToAnotherDevice) {
  const AnyCall call = WideCall{.n = 3};
  const AnyCall moved = call.at(Where{Device{DeviceType::cpu(), 0}});
  EXPECT_EQ(to_string(moved.ref()), "WideCall n=3 on cpu:0");
  EXPECT_EQ(to_string(call.ref()), "WideCall n=3 on cuda:0");
}

}  // namespace
}  // namespace kiln
