#include "tests/cache/remote_fixture.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

#include <absl/time/clock.h>

#include <memory>
#include <signal.h>
#include <string>
#include <thread>
#include <vector>

// One builder for a key among machines: processes here, each with a disk of its own.
namespace kiln::cache {
namespace {

using testing::Child;
using testing::is_ok;
using testing::make_artifact;
using testing::share;
using testing::TempDir;

class RemoteLeaseTest : public RemoteFixture {
 protected:
  void SetUp() override { server_ = testing::make_redis_server(); }
  Child holder(const TempDir& disk, const char* life) const {
    Child child({KILN_TEST_HELPER, "hold", disk.path(), "1", "1", server_->url(), life});
    EXPECT_EQ(child.read_line(), "held");
    return child;
  }
  std::unique_ptr<Store> impatient() const {
    StoreOptions with = options();
    with.remote.lease_life = absl::Milliseconds(500);
    return make_store(with);
  }
  static absl::Time in(absl::Duration time) { return absl::Now() + time; }
  const CompileKey key_ = make_artifact(1).key;
};

TEST_F(RemoteLeaseTest, MachinesBuildEachKeyOnceBetweenThem) {
  constexpr int kMachines = 8, kKeys = 60;
  TempDir disks[kMachines];
  std::vector<Child> children;
  for (const TempDir& disk : disks) {
    children.emplace_back(std::vector<std::string>{KILN_TEST_HELPER, "machine", disk.path(), "0",
                                                   std::to_string(kKeys), server_->url()});
  }
  int built = 0;
  for (Child& child : children) {
    built += std::stoi(child.read_line());
    EXPECT_EQ(child.wait(), 0);
  }
  EXPECT_EQ(built, kKeys);
  for (const TempDir& disk : disks)
    EXPECT_EQ(testing::files_below(disk.path()).size(), static_cast<std::size_t>(kKeys))
        << "everybody has all, and no lease is left";
}

TEST_F(RemoteLeaseTest, ALivingHolderIsWaitedForBeyondTheLifeOfALease) {
  const TempDir disk;
  const Child child = holder(disk, "0.4");
  const auto store = impatient();
  EXPECT_THAT(store->lease(key_, in(absl::Milliseconds(1500))),
              testing::status_is(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(store->stats().lease_waits, 1);
  EXPECT_THAT(store->lease(make_artifact(2).key, in(absl::Seconds(60))), is_ok());
  EXPECT_THAT(store->lease(key_, absl::Now(), /*is_local=*/true), is_ok());
}

// Guards: hang on a lock whose holder was killed or stopped.
TEST_F(RemoteLeaseTest, AKilledOrStoppedHolderDelaysByTheLifeOfItsLease) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const TempDir disk;
    Child child = holder(disk, "0.5");
    child.send(signal);
    const auto store = impatient();
    EXPECT_THAT(store->lease(key_, in(absl::Seconds(60))), is_ok()) << signal;
  }
}

TEST_F(RemoteLeaseTest, GoingOnTheStoppedHolderTakesNothingFromItsSuccessor) {
  const TempDir disk;
  Child child = holder(disk, "0.5");
  child.send(SIGSTOP);
  StoreOptions with = options();
  with.remote.lease_life = absl::Seconds(2);
  const auto successor = make_store(with);
  const auto lease = successor->lease(key_, in(absl::Seconds(60)));
  ASSERT_THAT(lease, is_ok());
  child.send(SIGCONT);
  absl::SleepFor(absl::Milliseconds(500));
  child.send(SIGKILL);
  EXPECT_THAT(impatient()->lease(key_, in(absl::Milliseconds(300))),
              testing::status_is(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(RemoteLeaseTest, TheLeaseIsKeptUntilTheArtifactIsThere) {
  testing::Proxy proxy(server_->port());
  const auto store = make_store(options(server_->url(proxy.port())));
  {
    const auto lease = store->lease(key_, in(absl::Seconds(60)));
    ASSERT_THAT(lease, is_ok());
    proxy.set_delay_ms(300);
    ASSERT_THAT(store->put(share(make_artifact(1))), is_ok());
  }
  const auto other = machine();
  EXPECT_THAT(other->lease(key_, in(absl::Seconds(60))), is_ok());
  EXPECT_TRUE((*other->find(make_artifact(1))).has_value());
}

TEST_F(RemoteLeaseTest, AWaiterGoesOnWhenTheStoreDies) {
  const TempDir disk;
  const Child child = holder(disk, "30");
  const auto store = machine();
  std::thread killer([&] {
    absl::SleepFor(absl::Milliseconds(200));
    server_->stop();
  });
  EXPECT_THAT(store->lease(key_, in(absl::Seconds(60))), is_ok());
  killer.join();
  EXPECT_GE(stats_of(*store).errors, 1);
}

TEST_F(RemoteLeaseTest, WhoWritesNothingHasNobodyWait) {
  const TempDir disk;
  const Child child = holder(disk, "30");
  StoreOptions reader = options();
  reader.remote.read_only = true;
  EXPECT_THAT(make_store(reader)->lease(key_, absl::Now()), is_ok());
}

}  // namespace
}  // namespace kiln::cache
