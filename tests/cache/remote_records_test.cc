#include "cache/remote_records.h"

#include "cache/remote_value.h"
#include "cache/tuning_files.h"
#include "tests/cache/remote_fixture.h"

#include <string>

// Tuning records of machines that share a store.
namespace kiln::cache {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::status_is;
using testing::TempDir;

class RemoteRecordsTest : public RemoteFixture {
 protected:
  RemoteRecordsTest() { server_ = testing::make_redis_server(); }

  // Those of a machine: of its folder, where it has one, and of the store.
  static TuningFiles records(const StoreOptions& with, const std::string& dir = "") {
    return TuningFiles({.dir = dir, .remote = remote_records_of(*make_store(with))});
  }
  static StoreOptions trusting(StoreOptions options, const SigningKey& key) {
    options.trusted_keys = {true, {public_key(key)}};
    return options;
  }
};

TEST_F(RemoteRecordsTest, WhatOneMachinePutsAnotherFindsAndKeeps) {
  const TempDir disk;
  // Asked for before it is there: that is not remembered.
  const TuningFiles two = records(options(), disk.path());
  EXPECT_EQ(two.find("aa").value(), std::nullopt);
  EXPECT_THAT(records(options()).put("aa", "one"), is_ok());
  EXPECT_EQ(two.find("aa", nullptr, /*ask_remote=*/false).value(), std::nullopt);
  EXPECT_EQ(two.find("aa", [](const std::string&) { return false; }).value(), std::nullopt);
  EXPECT_EQ(two.find("aa").value(), "one");
  server_->stop();
  EXPECT_EQ(two.find("aa").value(), "one");
  EXPECT_EQ(two.find("bb").value(), std::nullopt) << "a store that is gone is no trouble";
}

TEST_F(RemoteRecordsTest, AReaderWritesNothing) {
  StoreOptions reader = options();
  reader.remote.read_only = true;
  EXPECT_THAT(records(reader).put("aa", "one"), is_ok());
  EXPECT_EQ(records(options()).find("aa").value(), std::nullopt);
}

TEST_F(RemoteRecordsTest, WhereSignaturesAreAskedForOthersAreNotBelieved) {
  const SigningKey key = new_signing_key().value(), other = new_signing_key().value();
  StoreOptions signs = options();
  EXPECT_THAT(records(signs).put("aa", "unsigned"), is_ok());
  EXPECT_EQ(records(trusting(options(), key)).find("aa").value(), std::nullopt);
  EXPECT_THAT(log(), HasSubstr("must be signed by a trusted key"));
  signs.remote.signing_key = other;
  EXPECT_THAT(records(signs).put("aa", "of another"), is_ok());
  EXPECT_EQ(records(trusting(options(), key)).find("aa").value(), std::nullopt);
  signs.remote.signing_key = key;
  EXPECT_THAT(records(signs).put("aa", "right"), is_ok());
  EXPECT_EQ(records(trusting(options(), key)).find("aa").value(), "right");
}

TEST_F(RemoteRecordsTest, ASignatureOfOneKindOfThingIsNoneOfAnother) {
  const SigningKey key = new_signing_key().value();
  const TrustedKeys trusted{true, {public_key(key)}};
  const std::string value = seal("tuning record", "text", &key);
  EXPECT_EQ(unseal("tuning record", value, trusted).value(), "text");
  EXPECT_THAT(unseal("artifact", value, trusted),
              status_is(absl::StatusCode::kPermissionDenied, HasSubstr("a wrong one")));
}

TEST_F(RemoteRecordsTest, AStrictMachineIsToldOfTrouble) {
  StoreOptions strict = options();
  strict.strict = true;
  const TuningFiles files = records(strict);
  server_->stop();
  EXPECT_FALSE(files.find("aa").ok());
  EXPECT_FALSE(files.put("aa", "one").ok());
}

}  // namespace
}  // namespace kiln::cache
