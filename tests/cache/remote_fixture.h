#ifndef KILN_TESTS_CACHE_REMOTE_FIXTURE_H_
#define KILN_TESTS_CACHE_REMOTE_FIXTURE_H_

#include "base/log.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/servers.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace kiln::cache {

// A store and the machines that share it: each `machine()` has nothing but its memory and, where
// asked for, a disk of its own. What was logged is kept.
class RemoteFixture : public ::testing::Test {
 protected:
  RemoteFixture() {
    set_log_sink([this](LogLevel, std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += std::string(line) + "\n";
    });
  }
  ~RemoteFixture() override { set_log_sink({}); }

  // Patient: a test machine may be slow, and no test here is about time unless it says so.
  StoreOptions options(const std::string& url) const {
    StoreOptions out;
    out.remote.url = url;
    out.remote.ca_file = server_ ? server_->ca_file() : "";
    out.remote.timeout = absl::Seconds(30);
    return out;
  }
  StoreOptions options() const { return options(server_->url()); }
  std::unique_ptr<Store> machine() const { return make_store(options()); }

  void put_and_flush(const Artifact& artifact, const StoreOptions& with) const {
    const auto store = make_store(with);
    ASSERT_THAT(store->put(testing::share(artifact)), testing::is_ok());
    ASSERT_TRUE(store->flush(absl::Seconds(60)));
    ASSERT_EQ(store->remote()->stats.stored, 1) << log();
  }
  std::string log() const {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }
  static RemoteStats stats_of(const Store& store) { return store.remote()->stats; }

  std::unique_ptr<testing::StoreServer> server_;

 private:
  mutable std::mutex log_mutex_;
  std::string log_;
};

}  // namespace kiln::cache

#endif  // KILN_TESTS_CACHE_REMOTE_FIXTURE_H_
