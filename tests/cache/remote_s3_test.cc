#include "tests/cache/remote_fixture.h"

#include <string>

// Signed requests, against Swift's S3 gateway: it checks each signature by itself.
namespace kiln::cache {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::make_artifact;
using ::testing::Not;

class RemoteS3Test : public RemoteFixture {
 protected:
  void SetUp() override { server_ = testing::make_s3_server({.user = kUser, .password = kSecret}); }
  // Nothing but the address, and keys as the environment has them.
  StoreOptions from_environment(const std::string& query = "") const {
    StoreOptions out =
        options("s3+http://127.0.0.1:" + std::to_string(server_->port()) + "/kiln" + query);
    out.remote.aws = {.access_key = kUser, .secret_key = kSecret};
    out.strict = true;
    return out;
  }
  absl::Status found(const StoreOptions& with) const {
    const auto store = make_store(with);
    const auto found = store->find(artifact_);
    if (!found.ok()) return found.status();
    return found->has_value() ? absl::OkStatus() : absl::NotFoundError("");
  }

  static constexpr const char* kUser = "KEYOFTHETEST";
  static constexpr const char* kSecret = "s3cret+/with=all";
  const Artifact artifact_ = make_artifact(1, 3000000);  // beyond what is sent without asking first
};

TEST_F(RemoteS3Test, KeysFromTheEnvironmentSignAndThoseOfTheUrlGoBefore) {
  put_and_flush(artifact_, from_environment());
  EXPECT_TRUE(server_->has(to_hex(artifact_.key)));
  EXPECT_THAT(found(from_environment()), is_ok());
  StoreOptions other = from_environment();
  other.remote.aws.session_token = "token+/of=a session";
  EXPECT_THAT(found(other), is_ok()) << "it is signed, too: a store that knows none minds not";
  other = options();
  other.remote.aws = {.access_key = "other", .secret_key = "other", .session_token = "other"};
  EXPECT_THAT(found(other), is_ok());
}

TEST_F(RemoteS3Test, WrongKeysAndRegionsAreRefusedAndShownNowhere) {
  StoreOptions wrong_secret = from_environment();
  wrong_secret.remote.aws.secret_key = "wr0ng";
  StoreOptions wrong_region = from_environment();
  wrong_region.remote.aws.region = "eu-west-1";
  for (const StoreOptions& with : {wrong_secret, wrong_region, from_environment("?region=eu-1")}) {
    const absl::Status status = found(with);
    EXPECT_THAT(status, testing::status_is(absl::StatusCode::kPermissionDenied));
    EXPECT_THAT(message_of(status), HasSubstr("credentials"));
    for (const char* secret : {"s3cret", "wr0ng", kUser})
      EXPECT_THAT(log() + message_of(status), Not(HasSubstr(secret)));
  }
  wrong_region.remote.url += "?region=us-east-1";
  EXPECT_THAT(found(wrong_region), testing::status_is(absl::StatusCode::kNotFound));
}

TEST_F(RemoteS3Test, WhatCannotBeSignedOrIsNoSuchUrlIsOneWarningAndNoRequest) {
  StoreOptions with = from_environment();
  with.remote.aws = {};
  EXPECT_THAT(make_store(with)->remote()->reason, HasSubstr("secret key"));
  for (const char* rest : {"?regio=a", "?region=a&b=c", "?region=a/b", "?region=s3cret%40", "#f"}) {
    const std::string reason = make_store(from_environment(rest))->remote()->reason;
    EXPECT_THAT(reason, HasSubstr("must")) << rest;
    EXPECT_THAT(reason, Not(HasSubstr("s3cret")));
  }
  with = from_environment();
  with.remote.url = "s3+redis://127.0.0.1/0";
  EXPECT_THAT(make_store(with)->remote()->reason, HasSubstr("s3+https://"));
}

}  // namespace
}  // namespace kiln::cache
