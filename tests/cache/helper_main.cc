// cache_test_helper MODE DIR SEED [N]
//   hold     takes the lease, prints "held", sleeps for ever
//   build    N threads: look, lease, look again, else "build" for 50 ms and put; prints how many
//            were built
//   write    puts artifacts SEED .. SEED+N-1 over and over
//   behind   puts artifacts SEED .. SEED+N-1 behind the call and exits
//   put-once stops itself; going on it looks for artifact SEED, takes the lease, looks again and
//   puts collect  stops itself; going on it evicts all artifacts machine  URL: looks for artifacts
//   SEED .. SEED+N-1 in four threads as build does, in the disk
//            DIR and the remote store; prints how many were built
#include "base/file_system.h"
#include "base/log.h"
#include "cache/garbage.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"

#include <absl/time/clock.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <signal.h>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using kiln::cache::Artifact;
using kiln::cache::Store;
using kiln::testing::make_artifact;
using kiln::testing::share;

int build_once(Store& store, const Artifact& wanted, absl::Duration build_time) {
  if ((*store.find(wanted)).has_value()) return 0;
  const auto lease = store.lease(wanted.key, absl::InfiniteFuture());
  if (!lease.ok()) std::abort();
  if ((*store.find(wanted)).has_value()) return 0;
  absl::SleepFor(build_time);
  if (!store.put(share(wanted)).ok()) std::abort();
  return 1;
}

int build(Store& store, int seed, int count) {
  std::atomic<int> built{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back(
        [&] { built += build_once(store, make_artifact(seed, 5000), absl::Milliseconds(50)); });
  }
  for (auto& thread : threads) thread.join();
  std::printf("%d\n", built.load());
  return 0;
}

int machine(Store& store, int seed, int count, absl::Duration build_time) {
  std::atomic<int> built{0}, next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = next++; i < count; i = next++)
        built += build_once(store, make_artifact(seed + i, 5000), build_time);
    });
  }
  for (auto& thread : threads) thread.join();
  if (!store.flush(absl::Seconds(60))) std::abort();
  std::printf("%d\n", built.load());
  return 0;
}

// Ends without the handlers of an exit: a tracer that counts system calls wants none of theirs.
[[noreturn]] void put_once(Store& store, const Artifact& artifact) {
  kiln::set_log_sink([](kiln::LogLevel, std::string_view) {});
  ::raise(SIGSTOP);
  build_once(store, artifact, absl::ZeroDuration());
  ::_exit(0);
}

[[noreturn]] void collect(const std::string& dir) {
  const kiln::cache::CacheDir folder(kiln::real_file_system(), dir, {});
  ::raise(SIGSTOP);
  const auto report = collect_garbage(
      folder, {.max_bytes = 1, .temp_age = absl::ZeroDuration(), .grace = absl::ZeroDuration()});
  ::_exit(report.ok() ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string_view mode = argv[1];
  const int seed = std::atoi(argv[3]);
  const int count = argc > 4 ? std::atoi(argv[4]) : 1;
  kiln::cache::StoreOptions options{.disk_dir = argv[2],
                                    .write_behind = mode == "behind" || mode == "machine",
                                    .heartbeat = absl::Milliseconds(50)};
  if (argc > 5) options.remote.url = argv[5];
  options.remote.timeout = absl::Seconds(30);
  options.remote.lease_life = absl::Seconds(argc > 6 ? std::atof(argv[6]) : 10);
  const auto store = kiln::cache::make_store(options);
  if (mode == "behind") {
    for (int i = 0; i < count; ++i) {
      if (!store->put(share(make_artifact(seed + i, 20000))).ok()) return 1;
    }
    std::exit(0);  // destroys nothing of this function
  }
  if (mode == "put-once") put_once(*store, make_artifact(seed, 20000));
  if (mode == "collect") collect(argv[2]);
  if (mode == "machine") return machine(*store, seed, count, absl::Milliseconds(20));
  if (mode == "build") return build(*store, seed, count);
  if (mode == "hold") {
    const auto lease = store->lease(make_artifact(seed).key, absl::InfiniteFuture());
    std::puts("held");
    std::fflush(stdout);
    while (true) ::pause();
  }
  if (mode == "write") {
    std::puts("writing");
    std::fflush(stdout);
    for (int i = 0;; i = (i + 1) % count) {
      if (!store->put(share(make_artifact(seed + i, 20000))).ok()) return 1;
    }
  }
  return 2;
}
