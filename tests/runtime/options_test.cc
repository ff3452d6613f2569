#include <kiln/log.h>
#include <kiln/options.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What is warned of while the environment is read with `name` set to `value`.
std::vector<std::string> complaints(const char* name, const char* value) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  ::setenv(name, value, 1);
  (void)RuntimeOptions::from_environment();
  ::unsetenv(name);
  set_log_sink({});
  return lines;
}

struct Setting {
  const char *name, *good, *bad, *wants;
};
constexpr Setting kSettings[] = {
    {"KILN_LOG", "select", "selects", "off, select"},
    {"KILN_LOG_LEVEL", "info", "loud", "debug, info, error, off"},
    {"KILN_COMPILE", "forbid", "forbidden", "block, async, forbid"},
    {"KILN_COMPILER_MATCH", "any", "every", "same, any"},
    {"KILN_CACHE_SHARED", "group", "all", "off, group"},
    {"KILN_STRICT", "yes", "2", "1 (on) or 0 (off)"},
    {"KILN_TUNED", "off", "of", "1 (on) or 0 (off)"},
    {"KILN_CACHE_WRITE_BEHIND", "0", "never", "1 (on) or 0 (off)"},
    {"KILN_CACHE_REMOTE_WRITE", "0", "-", "1 (on) or 0 (off)"},
    {"KILN_JOBS", "4", "four", "a number from 0 to 4096"},
    {"KILN_JOBS", "0", "1000000", "a number from 0 to 4096"},
    {"KILN_MAX_ENTRIES", "0", "-1", "a number from 0"},
    {"KILN_COMPILE_DEADLINE", "0.5", "inf", "a number from 0"},
    {"KILN_COMPILE_LIMIT", "1e3", "0", "a number from 0.001"},
    {"KILN_CACHE_REMOTE_TIMEOUT", "2", "nan", "a number from 0.001"},
    {"KILN_CACHE_MAX_BYTES", "4G", "4 G", "a number of bytes"},
    {"KILN_CACHE_REMOTE_MAX_BYTES", "0", "-5", "a number of bytes"},
    {"KILN_COMPILE_MEMORY", "2GiB", "2e9", "a number of bytes"},
    {"KILN_KERNEL_PATH", "/", "/nowhere", "a folder"},
    {"KILN_SELECT", "only=a;prefer=b,c", "onyl=a", "only=KEYS"},
};

TEST(OptionsTest, AValueThatIsNotUnderstoodIsNamedWithWhatWouldBe) {
  for (const Setting& one : kSettings) {
    EXPECT_THAT(complaints(one.name, one.good), IsEmpty()) << one.name;
    EXPECT_THAT(complaints(one.name, ""), IsEmpty()) << one.name;
    EXPECT_THAT(complaints(one.name, one.bad),
                ElementsAre(AllOf(HasSubstr(std::string(one.name) + " wants "),
                                  HasSubstr(one.wants), HasSubstr(one.bad))));
  }
}

TEST(OptionsTest, AndChangesNothing) {
  ::setenv("KILN_CACHE_WRITE_BEHIND", "never", 1);
  ::setenv("KILN_COMPILE_LIMIT", "soon", 1);
  ::setenv("KILN_COMPILE", "async", 1);
  ::setenv("KILN_STRICT", "on", 1);
  const RuntimeOptions options = RuntimeOptions::from_environment();
  EXPECT_TRUE(options.cache_write_behind);
  EXPECT_EQ(options.compile_limit_seconds, RuntimeOptions().compile_limit_seconds);
  EXPECT_EQ(options.policy, CompilePolicy::async);
  EXPECT_TRUE(options.strict_cache);
  for (const char* name :
       {"KILN_CACHE_WRITE_BEHIND", "KILN_COMPILE_LIMIT", "KILN_COMPILE", "KILN_STRICT"})
    ::unsetenv(name);
}

TEST(OptionsTest, WhatSignsRequestsToAnS3StoreComesFromAwsOwnVariables) {
  ::setenv("AWS_ACCESS_KEY_ID", "id", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  ::setenv("AWS_SESSION_TOKEN", "token", 1);
  ::setenv("AWS_DEFAULT_REGION", "there", 1);
  ::unsetenv("AWS_REGION");
  RemoteCacheOptions remote = RuntimeOptions::from_environment().cache_remote;
  EXPECT_EQ(remote.aws_access_key, "id");
  EXPECT_EQ(remote.aws_secret_key, "secret");
  EXPECT_EQ(remote.aws_session_token, "token");
  EXPECT_EQ(remote.aws_region, "there");
  ::setenv("AWS_REGION", "here", 1);
  EXPECT_EQ(RuntimeOptions::from_environment().cache_remote.aws_region, "here");
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                           "AWS_DEFAULT_REGION", "AWS_REGION"})
    ::unsetenv(name);
  remote = RuntimeOptions::from_environment().cache_remote;
  EXPECT_EQ(remote.aws_access_key + remote.aws_secret_key + remote.aws_region, "");
}

}  // namespace
}  // namespace kiln
