// Plugins with a static constructor that does harm: crashes, exits, hangs, or registers by the
// process-wide functions before the plugin fails.
#include <kiln/plugin.h>
#include <kiln/runtime.h>

#include <cstdlib>
#include <unistd.h>

namespace {
struct Constructor {
  Constructor() {
#if defined(KILN_TEST_CRASHES)
    std::abort();
#elif defined(KILN_TEST_EXITS)
    _exit(0);
#elif defined(KILN_TEST_HANGS)
    while (true) pause();
#else
    kiln::register_detector("constructor", [](const kiln::Device&) { return true; }).IgnoreError();
#endif
  }
} constructor;
}  // namespace

static absl::Status fill(kiln::Registry&) {
  return absl::InternalError("failed after its constructor registered");
}
KILN_PLUGIN("constructor", fill)
