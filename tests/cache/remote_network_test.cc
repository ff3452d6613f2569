#include "tests/cache/remote_fixture.h"

#include <absl/time/clock.h>

#include <string>
#include <thread>
#include <vector>

// Bad networks, and credentials.
namespace kiln::cache {
namespace {

using ::testing::HasSubstr;
using testing::is_ok;
using testing::make_artifact;
using ::testing::Not;
using testing::share;

class RemoteNetworkTest : public RemoteFixture, public ::testing::WithParamInterface<bool> {
 protected:
  void start(const testing::ServerOptions& with = {}) {
    server_ = GetParam() ? testing::make_redis_server(with) : testing::make_nginx_server(with);
    proxy_ = std::make_unique<testing::Proxy>(server_->port());
  }
  StoreOptions through_proxy() const { return options(server_->url(proxy_->port())); }
  ~RemoteNetworkTest() override { proxy_.reset(); }

  std::unique_ptr<testing::Proxy> proxy_;
  const Artifact artifact_ = make_artifact(1, 300000);
};

// Guards: a remote that hangs stalls every build.
TEST_P(RemoteNetworkTest, ASlowStoreIsGivenUpAfterTheTimeoutAndThenLeftAlone) {
  start();
  put_and_flush(artifact_, options());
  StoreOptions with = through_proxy();
  with.remote.timeout = absl::Milliseconds(200);
  with.remote.breaker.first_pause = absl::Hours(1);
  proxy_->set_delay_ms(60000);
  const auto store = make_store(with);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE((*store->find(artifact_)).has_value());
  EXPECT_EQ(stats_of(*store).errors, 3);
  EXPECT_EQ(stats_of(*store).skipped, 7);
  EXPECT_EQ(stats_of(*store).misses, 0);
  // What the process has it has, whatever the store does.
  ASSERT_THAT(store->put(share(artifact_)), is_ok());
  EXPECT_EQ((*store->find(artifact_))->tier, TierKind::memory);
  EXPECT_TRUE(store->flush(absl::Seconds(60)));
}

TEST_P(RemoteNetworkTest, ASlowStoreWithinTheTimeoutServes) {
  start();
  put_and_flush(artifact_, options());
  proxy_->set_delay_ms(30);
  const auto store = make_store(through_proxy());
  EXPECT_TRUE((*store->find(artifact_)).has_value()) << log();
}

// Guards: a remote that truncates.
TEST_P(RemoteNetworkTest, AConnectionCutAtAnyByteIsAnErrorAndNoMoreThanThat) {
  start();
  put_and_flush(artifact_, options());
  for (const long bytes : {0L, 1L, 3L, 100L, 1000L, 100000L, 250000L}) {
    proxy_->set_cut_after(bytes);
    StoreOptions with = through_proxy();
    with.remote.remember_missing = absl::ZeroDuration();
    const auto store = make_store(with);
    EXPECT_FALSE((*store->find(artifact_)).has_value()) << bytes;
    EXPECT_EQ(stats_of(*store).errors, 1) << bytes;
    EXPECT_EQ(stats_of(*store).misses + stats_of(*store).damaged, 0) << bytes;
    proxy_->set_cut_after(-1);
    EXPECT_TRUE((*store->find(artifact_)).has_value()) << bytes;
  }
}

TEST_P(RemoteNetworkTest, ThreadsShareFewConnections) {
  start();
  for (int i = 0; i < 8; ++i) put_and_flush(make_artifact(i, 1000), options());
  const auto store = make_store(through_proxy());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE((*store->find(make_artifact((t + i) % 8, 1000))).has_value());
        EXPECT_FALSE((*store->find(make_artifact(1000 + 20 * t + i))).has_value());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(stats_of(*store).misses, 160);
  EXPECT_LE(proxy_->connections(), 8);
}

TEST_P(RemoteNetworkTest, CredentialsWorkFromTheUrlAndBesideItAndAreShownNowhere) {
  start({.user = "kilnuser", .password = "s3cret-pass"});
  put_and_flush(artifact_, options());
  StoreOptions beside =
      options(server_->scheme() + "://127.0.0.1:" + std::to_string(server_->port()) +
              (GetParam() ? "" : "/kiln"));
  beside.remote.user = "kilnuser";
  beside.remote.password = "s3cret-pass";
  EXPECT_TRUE((*make_store(beside)->find(artifact_)).has_value());

  beside.remote.password = "wr0ng-pass";
  beside.strict = true;
  const auto store = make_store(beside);
  const auto found = store->find(artifact_);
  EXPECT_THAT(found, testing::status_is(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(stats_of(*store).errors, 1);
  const std::string shown = log() + message_of(found.status()) + store->remote()->address +
                            machine()->remote()->address + message_of(store->check_remote());
  EXPECT_THAT(shown, HasSubstr("credentials"));
  EXPECT_THAT(shown, HasSubstr("127.0.0.1"));
  for (const char* secret : {"s3cret", "wr0ng", "kilnuser"})
    EXPECT_THAT(shown, Not(HasSubstr(secret)));
  EXPECT_THAT(machine()->check_remote(), is_ok());
}

INSTANTIATE_TEST_SUITE_P(Stores, RemoteNetworkTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "redis" : "http"; });

class RemoteUrlTest : public RemoteFixture {};

TEST_F(RemoteUrlTest, AUrlThatIsNoneIsOneWarningWithoutItsSecrets) {
  for (const char* url :
       {"ftp://user:s3cret@host/", "s3cret", "redis://user:s3cret@host/name", "http://",
        "http://user:pa/s3cret@host", "http://user:a@s3cret@@host/", "redis://:s3cret@ho st/",
        "https://host/path?token=s3cret", "http://host:s3cret/"}) {
    const auto store = make_store(options(url));
    ASSERT_TRUE(store->remote()) << url;
    EXPECT_THAT(log() + store->remote()->reason + store->remote()->address,
                Not(HasSubstr("s3cret")))
        << url;
    EXPECT_FALSE((*store->find(make_artifact(1))).has_value()) << url;
    EXPECT_THAT(store->put(testing::share(make_artifact(1))), is_ok()) << url;
  }
}

TEST_F(RemoteUrlTest, APathThatTheStoreDoesNotHaveIsAnErrorAndNoMiss) {
  server_ = testing::make_bazel_like_server();
  const std::string base = "http://127.0.0.1:" + std::to_string(server_->port());
  for (const char* path : {"", "/cas", "/ac/deeper"}) {
    const auto store = make_store(options(base + path));
    EXPECT_FALSE((*store->find(make_artifact(1))).has_value());
    EXPECT_EQ(stats_of(*store).errors, 1) << path;
    EXPECT_EQ(stats_of(*store).misses, 0) << path;
  }
  EXPECT_THAT(make_store(options(base + "/instance/ac"))->check_remote(), is_ok());
}

TEST_F(RemoteUrlTest, WithoutARemoteNothingIsSaidOfOne) {
  const auto store = make_store({});
  EXPECT_FALSE(store->remote());
  EXPECT_THAT(store->check_remote(), is_ok());
}

// Guards: the certificate of anybody is taken.
TEST_F(RemoteUrlTest, ACertificateThatNobodyVouchesForIsRefused) {
  for (const auto make : {testing::make_redis_server, testing::make_nginx_server}) {
    server_ = make({.tls = true});
    StoreOptions with = options();
    with.remote.ca_file.clear();
    const auto store = make_store(with);
    EXPECT_FALSE((*store->find(make_artifact(1))).has_value());
    EXPECT_EQ(stats_of(*store).errors, 1);
  }
}

}  // namespace
}  // namespace kiln::cache
