#include <kiln/options.h>

#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln {
namespace {

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
