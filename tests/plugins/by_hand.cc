// Plugins whose PluginInfo is written by hand: of another ABI, of an older Kiln, null, or one that
// lets an exception out.
#include <kiln/plugin.h>

#include "tests/plugins/test_backend.h"

#include <stdexcept>

static bool fill(kiln::Registry* registry, void (*)(void*, const char*), void*) {
#ifdef KILN_TEST_ESCAPING
  kiln::test_backend::add_target(*registry, "escaping");
  throw std::runtime_error("nobody caught this");
#else
  kiln::test_backend::add_target(*registry, "by_hand");
  return true;
#endif
}

extern "C" KILN_EXPORT const kiln::PluginInfo* kiln_plugin() {
#if defined(KILN_TEST_OTHER_ABI)
  static const kiln::PluginInfo info{sizeof(kiln::PluginInfo),
                                     "kiln 0.0, c++ abi 1002, absl lts_1999", "by_hand", fill};
  return &info;
#elif defined(KILN_TEST_OLDER_INFO)
  // As a Kiln would have it whose PluginInfo ended before `fill`.
  static const kiln::PluginInfo info{offsetof(kiln::PluginInfo, fill), kiln::kPluginAbi, "by_hand",
                                     fill};
  return &info;
#elif defined(KILN_TEST_ESCAPING)
  static const kiln::PluginInfo info{sizeof(kiln::PluginInfo), kiln::kPluginAbi, "by_hand", fill};
  return &info;
#else
  (void)fill;
  return nullptr;
#endif
}
