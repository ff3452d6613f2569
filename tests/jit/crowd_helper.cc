// jit_crowd_helper CACHE_DIR THREADS PROGRAMS: every thread builds every program, each beginning
// with another, over two compile workers. Prints "compilations=N failures=N" and exits 0 when all
// were had.
#include "jit/engine.h"
#include "jit/nvrtc_compiler.h"
#include "jit/worker_compiler.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int threads = std::atoi(argv[2]), programs = std::atoi(argv[3]);
  kiln::jit::Sources sources;
  if (!sources.add({{"k.cu", "extern \"C\" __global__ void k(int* p) { *p = SEED; }\n"}}).ok())
    return 2;
  const auto store = kiln::cache::make_store({.disk_dir = argv[1]});
  kiln::jit::Engine engine(sources, *store);
  const auto compiler = kiln::jit::make_worker_compiler(
      {.worker = kiln::jit::find_compile_worker(""), .max_workers = 2},
      kiln::jit::make_nvrtc_compiler());
  std::atomic<int> failed = 0;
  std::vector<std::thread> crowd;
  for (int t = 0; t < threads; ++t) {
    crowd.emplace_back([&, t] {
      for (int i = 0; i < programs; ++i) {
        const std::int64_t seed = (t + i) % programs;
        const auto built = engine.build(
            *compiler,
            {.source = "k.cu", .kernels = {"k"}, .constants = {{.name = "SEED", .value = seed}}},
            "sm_90");
        failed += built.ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : crowd) thread.join();
  std::printf("compilations=%lld failures=%d in_process=%lld\n",
              static_cast<long long>(engine.stats().compilations), failed.load(),
              static_cast<long long>(compiler->stats().in_process));
  return failed == 0 ? 0 : 1;
}
