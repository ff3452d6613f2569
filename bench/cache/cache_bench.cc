// The cache's paths. Figures and what they are compared with: docs/performance.md, "Cache".
#include "base/file_system.h"
#include "cache/pack.h"
#include "cache/store.h"
#include "tests/support/artifacts.h"
#include "tests/support/temp_dir.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace kiln::cache {
namespace {

using testing::share;

constexpr int kMany = 1000;

// As a build makes it: sources of 30 KiB that the artifacts share but for a constant, and an image
// of machine code (which zstd takes to about a third; half of these bytes repeat).
Artifact built(int seed, std::size_t image_bytes) {
  Artifact out = testing::make_artifact(seed, image_bytes / 2);
  out.source_fields = {{"format", "1"},
                       {"target", "sm_90"},
                       {"source_name", "kernel_sources/norm/layer_norm.cu"},
                       {"source", std::string(10 << 10, 's')},
                       {"header device/row.cuh", std::string(20 << 10, 'h')},
                       {"define", "ROWS=" + std::to_string(seed)}};
  out.compiler_fields = {{"name", "nvrtc"}, {"build", "13.0.88"}, {"headers", "13000"}};
  out.key = {hash_fields(out.source_fields), hash_fields(out.compiler_fields)};
  out.image.resize(image_bytes, 'i');
  return out;
}

// What the requests of a process have in common: texts that the table of sources holds once.
Artifact with_shared_sources(Artifact artifact) {
  static const SharedText source = artifact.source_fields[3].value,
                          header = artifact.source_fields[4].value;
  artifact.source_fields[3].value = source;
  artifact.source_fields[4].value = header;
  return artifact;
}

// Makes the page cache cold, inodes and folders included, where root asks; else the pages of
// `files` alone. Says which.
const char* drop_caches(const std::vector<std::string>& files) {
  const Fd all(::open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC));
  if (all.valid() && ::write(all.get(), "3", 1) == 1) return "all caches dropped";
  for (const std::string& file : files) {
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  return "data pages dropped, inodes and folders still warm";
}

std::vector<Artifact> many() {
  std::vector<Artifact> out;
  for (int i = 0; i < kMany; ++i) out.push_back(with_shared_sources(built(i, 20 << 10)));
  return out;
}

// What a process does with 1,000 artifacts that it finds: `state.range(0)` says whether their pages
// are cold.
void find_all(benchmark::State& state, const StoreOptions& options,
              const std::vector<std::string>& files) {
  const std::vector<Artifact> wanted = many();
  for (auto _ : state) {
    state.PauseTiming();
    if (state.range(0) != 0) state.SetLabel(drop_caches(files));
    state.ResumeTiming();
    const auto store = make_store(options);
    for (const Artifact& one : wanted) {
      if (!(*store->find(one)).has_value()) std::abort();
    }
  }
}

void artifacts_1000_from_a_pack(benchmark::State& state) {
  const testing::TempDir dir;
  PackContents contents;
  for (Artifact& one : many()) contents.artifacts.push_back(share(std::move(one)));
  const std::string path = dir / "many.kpack";
  testing::write_file(path, *make_pack(std::move(contents)));
  ::chmod(path.c_str(), 0644);
  ::sync();
  find_all(state, {.layers = {path}}, {path});
}
BENCHMARK(artifacts_1000_from_a_pack)
    ->ArgName("cold")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(10);

void artifacts_1000_from_files(benchmark::State& state) {
  const testing::TempDir dir;
  {
    const auto store = make_store({.disk_dir = dir.path()});
    for (Artifact& one : many()) {
      if (!store->put(share(std::move(one))).ok()) std::abort();
    }
  }
  ::sync();
  find_all(state, {.disk_dir = dir.path()}, testing::files_below(dir.path()));
}
BENCHMARK(artifacts_1000_from_files)
    ->ArgName("cold")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(10);

// Artifacts of 100 KiB from disk, two in turn: memory has room for the last one only. Against
// reading the same files.
void disk_hit_100k(benchmark::State& state) {
  const testing::TempDir dir;
  const auto store = make_store({.disk_dir = dir.path(), .max_memory_bytes = 1});
  const Artifact artifacts[] = {built(1, 100 << 10), built(2, 100 << 10)};
  for (const Artifact& one : artifacts) {
    if (!store->put(share(one)).ok()) std::abort();
  }
  std::size_t next = 0;
  for (auto _ : state) {
    if ((*store->find(artifacts[next++ % 2]))->tier != TierKind::disk) std::abort();
  }
}
BENCHMARK(disk_hit_100k)->Unit(benchmark::kMicrosecond);

void file_read_100k(benchmark::State& state) {
  const testing::TempDir dir;
  if (!make_store({.disk_dir = dir.path()})->put(share(built(1, 100 << 10))).ok()) std::abort();
  const std::string path = testing::files_below(dir.path()).at(0);
  for (auto _ : state) {
    const Fd fd = *real_file_system().open_read(path);
    benchmark::DoNotOptimize(read_all(real_file_system(), fd, 1 << 30));
  }
}
BENCHMARK(file_read_100k)->Unit(benchmark::kMicrosecond);

// A hit in memory, each thread its own key. `sources` 0: fields of 60 bytes; 1: sources of 30 KiB
// that the request shares with the artifact, as those of one process do; 2: not shared, compared in
// full.
void memory_hit(benchmark::State& state) {
  static const std::unique_ptr<Store> store = [] {
    auto out = make_store({.max_memory_bytes = 1ll << 30});
    for (int i = 0; i < 64; ++i) {
      if (!out->put(share(testing::make_artifact(i))).ok() ||
          !out->put(share(with_shared_sources(built(i, 1000)))).ok())
        std::abort();
    }
    return out;
  }();
  const int seed = state.thread_index();
  const Artifact wanted = state.range(0) == 0   ? testing::make_artifact(seed)
                          : state.range(0) == 1 ? with_shared_sources(built(seed, 0))
                                                : built(seed, 0);
  for (auto _ : state) benchmark::DoNotOptimize(store->find(wanted));
}
BENCHMARK(memory_hit)->ArgName("sources")->Arg(0)->Arg(1)->Arg(2)->Threads(1)->Threads(16);

// What a build's thread waits for its artifact to be kept.
void put_100k(benchmark::State& state) {
  const testing::TempDir dir;
  const auto store = make_store({.disk_dir = dir.path(), .write_behind = state.range(0) != 0});
  int seed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    store->flush(absl::Seconds(10));
    const auto artifact = share(built(++seed, 100 << 10));
    state.ResumeTiming();
    if (!store->put(artifact).ok()) std::abort();
  }
}
BENCHMARK(put_100k)->ArgName("behind")->Arg(0)->Arg(1)->Iterations(200)->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace kiln::cache
