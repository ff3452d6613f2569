#include "cache/remote_value.h"
#include "tests/cache/remote_fixture.h"

#include <absl/time/clock.h>

#include <ostream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

// The same questions to every kind of store.
namespace kiln::cache {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::make_artifact;
using testing::share;

struct Kind {
  const char* name;
  std::unique_ptr<testing::StoreServer> (*make)(const testing::ServerOptions&);
  bool tls;
  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

class RemoteTest : public RemoteFixture, public ::testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override { server_ = GetParam().make({.tls = GetParam().tls}); }
  bool is_found(const Artifact& artifact, const StoreOptions& with) const {
    return (*make_store(with)->find(artifact)).has_value();
  }
  const Artifact artifact_ = make_artifact(1, 300000);
  const std::string name_ = to_hex(artifact_.key);
};

TEST_P(RemoteTest, WhatOneMachineBuildsAnotherFindsAndKeeps) {
  put_and_flush(artifact_, options());
  EXPECT_TRUE(server_->has(name_));
  const testing::TempDir disk;
  StoreOptions with_disk = options();
  with_disk.disk_dir = disk.path();
  const auto store = make_store(with_disk);
  const auto found = *store->find(artifact_);
  ASSERT_TRUE(found) << log();
  EXPECT_EQ(found->tier, TierKind::remote);
  EXPECT_TRUE(testing::same_artifact(*found->artifact, artifact_));
  EXPECT_EQ((*store->find(artifact_))->tier, TierKind::memory);
  server_->stop();
  EXPECT_EQ((*make_store(with_disk)->find(artifact_))->tier, TierKind::disk);
  EXPECT_EQ(store->stats().remote_hits, 1);
  EXPECT_EQ(stats_of(*store).hits, 1);
  EXPECT_EQ(store->stats().errors, 0);
  EXPECT_EQ(log(), "");
}

TEST_P(RemoteTest, AMissIsAnAnswerAndIsRememberedForAWhile) {
  StoreOptions with = options();
  with.remote.remember_missing = absl::Milliseconds(300);
  const auto store = make_store(with);
  const absl::Time asked = absl::Now();
  ASSERT_FALSE((*store->find(artifact_)).has_value());
  put_and_flush(artifact_, options());
  const bool found_at_once = (*store->find(artifact_)).has_value();
  if (absl::Now() - asked < absl::Milliseconds(250)) {
    EXPECT_FALSE(found_at_once);
  }
  absl::SleepFor(absl::Milliseconds(350));
  EXPECT_TRUE((*store->find(artifact_)).has_value());
  EXPECT_EQ(stats_of(*store).misses, 1);
  EXPECT_EQ(stats_of(*store).errors, 0);
}

TEST_P(RemoteTest, HostObjectsAreNeitherWrittenNorAskedForNorBelieved) {
  Artifact host = artifact_;
  host.kind = kHostObject;
  const auto store = machine();
  ASSERT_THAT(store->put(share(host)), is_ok());
  ASSERT_TRUE(store->flush(absl::Seconds(60)));
  EXPECT_FALSE(server_->has(name_));
  server_->set(name_, make_remote_value(host, nullptr));
  EXPECT_FALSE(is_found(host, options()));
  const auto reader = machine();
  EXPECT_FALSE((*reader->find(artifact_)).has_value()) << "though a device image was asked for";
  EXPECT_EQ(stats_of(*reader).damaged, 1);
}

// Guards: a remote that returns other bytes, cut ones, or those of something else.
TEST_P(RemoteTest, WrongBytesAreDamageAndAMissAndTheNextBuildReplacesThem) {
  const std::string right = make_remote_value(artifact_, nullptr);
  std::string flipped = right;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
  Artifact forged = artifact_;  // other contents under the key of these
  forged.source_fields[0].value += "x";
  std::vector<std::string> wrong = {
      "",
      "x",
      right.substr(0, right.size() / 2),
      right.substr(0, right.size() - 1),
      right + "x",
      flipped,
      serialize(make_artifact(2)),
      serialize(forged),
      std::string("\x89KSIGN\r\n") + std::string(96, 'x') + right.substr(1)};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    server_->set(name_, wrong[i]);
    const auto store = machine();
    EXPECT_FALSE((*store->find(artifact_)).has_value()) << i;
    EXPECT_EQ(stats_of(*store).damaged, 1) << i;
    EXPECT_EQ(stats_of(*store).errors, 0) << i;
    EXPECT_EQ(store->stats().misses, 1) << i;
    EXPECT_EQ(store->stats().quarantined, 1) << i;
    ASSERT_THAT(store->put(share(artifact_)), is_ok());
    ASSERT_TRUE(store->flush(absl::Seconds(60)));
    EXPECT_TRUE(is_found(artifact_, options())) << i;
  }
}

TEST_P(RemoteTest, ValuesBeyondTheLimitAreNeitherReadNorWritten) {
  put_and_flush(artifact_, options());
  StoreOptions small = options();
  small.remote.max_bytes = 10000;
  const auto store = make_store(small);
  EXPECT_FALSE((*store->find(artifact_)).has_value());
  EXPECT_EQ(stats_of(*store).damaged, 1);
  EXPECT_EQ(stats_of(*store).errors, 0) << log();
  EXPECT_LT(store->stats().bytes_read, 10001);
  const Artifact large = make_artifact(2, 20000);
  ASSERT_THAT(store->put(share(large)), is_ok());
  ASSERT_TRUE(store->flush(absl::Seconds(60)));
  EXPECT_FALSE(server_->has(to_hex(large.key)));
  const Artifact fits = make_artifact(3, 2000);
  ASSERT_THAT(store->put(share(fits)), is_ok());
  ASSERT_TRUE(store->flush(absl::Seconds(60)));
  EXPECT_TRUE(server_->has(to_hex(fits.key))) << "the store is still asked";
}

TEST_P(RemoteTest, WithAKeyConfiguredOnlySignedValuesAreTaken) {
  const SigningKey mine = *new_signing_key(), other = *new_signing_key();
  StoreOptions trusting = options();
  trusting.trusted_keys = {.required = true, .keys = {public_key(mine)}};
  const auto refused_after = [&](const std::string& value) {
    server_->set(name_, value);
    const auto store = make_store(trusting);
    return !(*store->find(artifact_)).has_value() && stats_of(*store).damaged == 1;
  };
  EXPECT_TRUE(refused_after(make_remote_value(artifact_, nullptr)));
  EXPECT_TRUE(refused_after(make_remote_value(artifact_, &other)));
  Artifact changed = artifact_;
  changed.image += "x";
  const std::string by_mine = make_remote_value(artifact_, &mine);
  EXPECT_TRUE(refused_after(by_mine.substr(0, 8 + 32 + 64) + serialize(changed)));
  EXPECT_THAT(log(), HasSubstr("signed by a trusted key"));

  StoreOptions writer = options();
  writer.remote.signing_key = mine;
  put_and_flush(artifact_, writer);
  EXPECT_TRUE(is_found(artifact_, trusting));
  EXPECT_TRUE(is_found(artifact_, options())) << "who asks for no signature takes it too";
}

TEST_P(RemoteTest, WithoutACompilerTheLastOneOfTheSameSourceServes) {
  put_and_flush(artifact_, options());
  Artifact wanted = artifact_;
  wanted.compiler_fields = {};
  wanted.key.compiler = {};
  const auto found = *machine()->find_by_source(wanted);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->artifact->image, artifact_.image);
  Artifact newer = artifact_;
  newer.compiler_fields[0].value = "nvrtc newer";
  newer.key.compiler = hash_fields(newer.compiler_fields);
  newer.image += "newer";
  put_and_flush(newer, options());
  EXPECT_EQ((*machine()->find_by_source(wanted))->artifact->image, newer.image);
  // What names a key is as little believed as the rest.
  server_->set(to_hex(wanted.key), to_hex(make_artifact(5).key));
  EXPECT_FALSE((*machine()->find_by_source(wanted)).has_value());
  EXPECT_FALSE((*machine()->find_by_source(make_artifact(9))).has_value());
}

TEST_P(RemoteTest, ReadOnlyWritesNothing) {
  StoreOptions with = options();
  with.remote.read_only = true;
  {
    const auto store = make_store(with);
    ASSERT_THAT(store->put(share(artifact_)), is_ok());
    ASSERT_TRUE(store->flush(absl::Seconds(60)));
  }
  EXPECT_FALSE(server_->has(name_));
  put_and_flush(artifact_, options());
  EXPECT_TRUE(is_found(artifact_, with));
}

TEST_P(RemoteTest, AForkedChildLeavesItsParentsConnectionsAlone) {
  put_and_flush(artifact_, options());
  const auto store = machine();
  ASSERT_TRUE((*store->find(artifact_)).has_value());
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto found = store->find(make_artifact(2));
    ::_exit(found.ok() && !found->has_value() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE((*store->find(make_artifact(3))).has_value());
  EXPECT_EQ(stats_of(*store).errors, 0);
}

TEST_P(RemoteTest, AStoppedServerIsOneWarningAndIsFoundAgainWhenItIsBack) {
  put_and_flush(artifact_, options());
  StoreOptions with = options();
  with.remote.breaker = {.failures = 2,
                         .first_pause = absl::Milliseconds(200),
                         .longest_pause = absl::Milliseconds(200)};
  with.remote.remember_missing = absl::ZeroDuration();
  with.max_memory_bytes = 1;  // every look-up goes through
  const auto store = make_store(with);
  ASSERT_TRUE((*store->find(artifact_)).has_value());
  server_->stop();
  ASSERT_FALSE((*store->find(make_artifact(2))).has_value());
  ASSERT_FALSE((*store->find(make_artifact(2))).has_value());
  EXPECT_EQ(stats_of(*store).errors, 2);
  EXPECT_EQ(stats_of(*store).opened, 1);
  EXPECT_TRUE(store->remote()->is_left_alone);
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE((*store->find(make_artifact(2))).has_value());
  EXPECT_GE(stats_of(*store).skipped, 900);
  EXPECT_EQ(stats_of(*store).misses, 0) << "no answer is no miss";
  ASSERT_THAT(store->put(share(make_artifact(4))), is_ok());
  EXPECT_TRUE(store->flush(absl::Seconds(60)));
  server_->start();
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (!(*store->find(artifact_)).has_value() && absl::Now() < end)
    absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(store->remote()->is_left_alone) << log();
}

INSTANTIATE_TEST_SUITE_P(Stores, RemoteTest,
                         ::testing::Values(Kind{"redis", testing::make_redis_server, false},
                                           Kind{"redis_tls", testing::make_redis_server, true},
                                           Kind{"http", testing::make_nginx_server, false},
                                           Kind{"https", testing::make_nginx_server, true},
                                           Kind{"bazel_remote_rules",
                                                testing::make_bazel_like_server, false},
                                           Kind{"s3", testing::make_s3_server, false}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace kiln::cache
