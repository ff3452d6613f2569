// What is wrong with the implementations of an op is said when the op is constructed.
#include <kiln/log.h>

#include "tests/runtime/dispatch_fixture.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum absl::StatusCode;

struct NoKernel : ToyFwdInterface {
  absl::Status forward(const Stream&, const Tensor&, const Tensor&) const override {
    return absl::OkStatus();
  }
};
struct OtherForward : Kernel, ToyFwdInterface {
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
  absl::Status forward(const Stream&) const { return absl::OkStatus(); }
};
class LoneKernel : public Kernel {
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
};
class ToyGeneralToo final : public ToyKernel {
 public:
  static constexpr bool general = true;
  explicit ToyGeneralToo(const ToyCall&) {}
};

class ToyOther final : public Kernel, public ToyOtherFwdInterface {
 public:
  explicit ToyOther(const ToyOtherCall&) {}
  std::vector<Program> programs(const DeviceFacts&, const Config&) const override { return {}; }
  absl::Status forward(const Stream&) const override { return absl::OkStatus(); }
};

absl::Status construct(const std::vector<std::pair<std::string, KernelType>>& types) {
  ToyRuntime toy;
  for (const auto& [key, type] : types) EXPECT_THAT(toy.add(key, type, "/opt/acme.so"), is_ok());
  return toy.op().status();
}

TEST(DispatchConstructionTest, Table5Row1DoesNotImplementTheInterface) {
  EXPECT_THAT(
      construct({{"no_kernel", kernel_type<NoKernel>()}}),
      status_is(kInvalidArgument, AllOf(HasSubstr("does not implement ToyFwdInterface"),
                                        HasSubstr("no_kernel (NoKernel, from /opt/acme.so)"))));
}

TEST(DispatchConstructionTest, Table5Row2ForwardDoesNotTakeTheInterfacesArguments) {
  EXPECT_THAT(
      construct({{"other_forward", kernel_type<OtherForward>()}}),
      status_is(kInvalidArgument, HasSubstr("forward does not take ToyFwdInterface's arguments")));
  KernelType stale = kernel_type<ToyGeneral>();
  stale.contract ^= 1;  // what a plugin has that was built against another version of the interface
  EXPECT_THAT(construct({{"stale", stale}}),
              status_is(kInvalidArgument,
                        AllOf(HasSubstr("forward does not take ToyFwdInterface's arguments"),
                              HasSubstr("another version of the interface"))));
}

TEST(DispatchConstructionTest, Table5Row3HasMoreThanOneGeneralImplementation) {
  EXPECT_THAT(
      construct({{"g1", kernel_type<ToyGeneral>()}, {"g2", kernel_type<ToyGeneralToo>()}}),
      status_is(kInvalidArgument,
                AllOf(HasSubstr("has more than one general implementation"), HasSubstr("g1, g2"))));
}

TEST(DispatchConstructionTest, Table5Row4PreferencesFormACycle) {
  KernelType a = kernel_type<ToyWide>(), b = a, c = a;
  a.preferred_over = {"b"};
  b.preferred_over = {"c"};
  c.preferred_over = {"a"};
  EXPECT_THAT(construct({{"a", a}, {"b", b}, {"c", c}}),
              status_is(kInvalidArgument, HasSubstr("preferences form a cycle through a, b, c")));
  a.preferred_over = {"a"};
  EXPECT_THAT(construct({{"a", a}}),
              status_is(kInvalidArgument, HasSubstr("preferences form a cycle through a")));
}

TEST(DispatchConstructionTest, Table5Row5KeysImplementNoneOfItsKernelInterfaces) {
  EXPECT_THAT(
      construct({{"lone", kernel_type<LoneKernel>()}}),
      status_is(kInvalidArgument, HasSubstr("keys implement none of its kernel interfaces")));
}

TEST(DispatchConstructionTest, AGeneralImplementationDeclaresNoPreference) {
  KernelType type = kernel_type<ToyGeneral>();
  type.preferred_over = {"toy_wide"};
  EXPECT_THAT(
      construct({{"toy_wide", kernel_type<ToyWide>()}, {"g", type}}),
      status_is(kInvalidArgument, HasSubstr("a general implementation declares no preference")));
}

TEST(DispatchConstructionTest, PreferredOverNamesAKeyOfTheInterface) {
  KernelType type = kernel_type<ToyWide>();
  type.preferred_over = {"toy_typo"};
  ToyRuntime tree;
  ASSERT_THAT(tree.add("toy_wide", type, "in-tree"), is_ok());
  EXPECT_THAT(tree.op(), status_is(kInvalidArgument,
                                   AllOf(HasSubstr("preferred_over names no key of the interface"),
                                         HasSubstr("got toy_typo"))));
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  EXPECT_THAT(construct({{"toy_wide", type}}), is_ok())
      << "a backend may know keys of another tree";
  set_log_sink({});
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("toy_typo"), HasSubstr("/opt/acme.so"))));
  // A key of another interface is an error from anybody.
  type.preferred_over = {"toy_other"};
  EXPECT_THAT(construct({{"toy_wide", type}, {"toy_other", kernel_type<ToyOther>()}}),
              status_is(kInvalidArgument, HasSubstr("ToyOtherFwdInterface")));
}

TEST(DispatchConstructionTest, OneKeyTwiceIsABackendErrorAndAnInTreeKeyIsReused) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<ToyWide>("toy_wide", "in-tree"), is_ok());
  ASSERT_THAT(toy.add<ToyGeneral>("extra"), is_ok());
  const absl::Status twice = toy.add<ToyGeneral>("extra");
  EXPECT_THAT(twice, status_is(kAlreadyExists, HasSubstr("extra")));
  EXPECT_TRUE(is_backend_error(twice));
  ASSERT_THAT(toy.add<ToyWide>("toy_wide"), is_ok()) << "found when the op is constructed";
  EXPECT_THAT(toy.op(), status_is(kInvalidArgument, HasSubstr("reuse keys it has")));
}

TEST(DispatchConstructionTest, ARegistrationReachesOpsConstructedAfterIt) {
  ToyRuntime toy;
  ASSERT_THAT(toy.add<ToyWide>("toy_wide"), is_ok());
  auto before = toy.op();
  ASSERT_THAT(toy.add<ToyShort>("toy_short"), is_ok());
  auto after = toy.op();
  EXPECT_EQ(*(*before)->key_for<ToyFwdInterface>(stating(10, 90)), "toy_wide");
  EXPECT_EQ(*(*after)->key_for<ToyFwdInterface>(stating(10, 90)), "toy_short");
}

}  // namespace
}  // namespace kiln::testing
