// A plugin that takes its process along is found in a process of its own.
#include "runtime/plugin_probe.h"

#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using enum absl::StatusCode;

absl::Status probe(const std::string& name, absl::Duration limit = absl::Seconds(60)) {
  return internal::probe_plugin({PLUGIN_PROBE}, std::string(PLUGIN_DIR) + "/" + name + ".so",
                                limit);
}

TEST(PluginProbeTest, AGoodPluginOpens) { EXPECT_THAT(probe("good"), is_ok()); }

TEST(PluginProbeTest, ABadPluginSaysWhy) {
  EXPECT_THAT(probe("other_abi"), status_is(kFailedPrecondition, HasSubstr("another ABI")));
  EXPECT_THAT(probe("nowhere"), status_is(kFailedPrecondition, HasSubstr("cannot be opened")));
}

TEST(PluginProbeTest, AStaticConstructorThatCrashesIsFound) {
  EXPECT_THAT(probe("crashes"), status_is(kFailedPrecondition,
                                          AllOf(HasSubstr("takes the process that opens it along"),
                                                HasSubstr("crashes.so"), HasSubstr("signal"))));
}

TEST(PluginProbeTest, AStaticConstructorThatExitsIsFoundEvenWithStatusZero) {
  EXPECT_THAT(probe("exits"),
              status_is(kFailedPrecondition, HasSubstr("ends the process that opens it")));
}

TEST(PluginProbeTest, AStaticConstructorThatHangsIsCutOff) {
  EXPECT_THAT(probe("hangs", absl::Seconds(2)),
              status_is(kDeadlineExceeded, HasSubstr("hangs.so")));
}

TEST(PluginProbeTest, AProbeThatCannotBeStartedSaysSo) {
  EXPECT_THAT(internal::probe_plugin({"/nowhere/probe"}, "x.so"), status_is(kFailedPrecondition));
}

}  // namespace
}  // namespace kiln::testing
