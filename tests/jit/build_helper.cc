// jit_build_helper CACHE_DIR SEED [TARGET]: builds one program whose key SEED chooses; prints
// "compilations=N found=TIER image=HASH" and exits 0, or prints the error and exits 1.
#include "base/hash128.h"
#include "jit/engine.h"
#include "jit/nvrtc_compiler.h"

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  kiln::jit::Sources sources;
  const std::string source = "extern \"C\" __global__ void k(int* p) { *p = SEED; }\n";
  if (!sources.add({{"k.cu", source}}).ok()) return 2;
  const auto store = kiln::cache::make_store({.disk_dir = argv[1]});
  kiln::jit::Engine engine(sources, *store);
  const auto nvrtc = kiln::jit::make_nvrtc_compiler();
  const kiln::Program program{
      .source = "k.cu",
      .kernels = {"k"},
      .constants = {{.name = "SEED", .value = std::int64_t{std::strtoll(argv[2], nullptr, 10)}}}};
  const auto built = engine.build(*nvrtc, program, argc > 3 ? argv[3] : "sm_90");
  if (!built.ok()) {
    std::printf("%s\n", built.status().ToString().c_str());
    return 1;
  }
  std::printf("compilations=%lld found=%s image=%s\n",
              static_cast<long long>(engine.stats().compilations),
              built->found_in ? std::string(to_string(*built->found_in)).c_str() : "built",
              to_hex(kiln::hash128(built->artifact->image)).c_str());
  return 0;
}
