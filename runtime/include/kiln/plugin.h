#ifndef KILN_PLUGIN_H_
#define KILN_PLUGIN_H_

#include <kiln/export.h>
#include <kiln/registry.h>
#include <kiln/version.h>

#include <absl/base/options.h>

#include <cstdint>
#include <exception>
#include <string>

// A backend outside the tree is a shared object with one C function, made by KILN_PLUGIN:
//
//   static absl::Status fill(kiln::Registry& registry) { … return absl::OkStatus(); }
//   KILN_PLUGIN("acme", fill)
//
// It is opened once, before the first op is constructed, and never closed. Filling must compile
// nothing and probe no device. What it registered counts only if it returns ok and throws nothing.
namespace kiln::inline v1 {

#define KILN_STRINGIFY_INNER_(x) #x
#define KILN_STRINGIFY_(x) KILN_STRINGIFY_INNER_(x)

// What must agree between a plugin and the library before any C++ passes between them: Kiln's
// version, the compiler's ABI and Abseil's inline namespace.
inline constexpr char kPluginAbi[] = "kiln " KILN_STRINGIFY_(KILN_VERSION_MAJOR) "." KILN_STRINGIFY_(
    KILN_VERSION_MINOR) ", c++ abi " KILN_STRINGIFY_(__GXX_ABI_VERSION) ", absl " KILN_STRINGIFY_(ABSL_OPTION_INLINE_NAMESPACE_NAME);

// Plain C, so that it can be read before anything else is trusted. Only ever grows at the end.
struct PluginInfo {
  std::uint32_t struct_bytes;
  const char* abi;
  const char* name;
  // Fills `registry`; on failure returns false after calling `fail(context, message)`. Lets no
  // exception out.
  bool (*fill)(Registry* registry, void (*fail)(void* context, const char* message), void* context);
};

}  // namespace kiln::inline v1

#define KILN_PLUGIN(plugin_name, fill_function)                                                   \
  extern "C" KILN_EXPORT const ::kiln::PluginInfo* kiln_plugin();                                 \
  extern "C" KILN_EXPORT const ::kiln::PluginInfo* kiln_plugin() {                                \
    static const ::kiln::PluginInfo info{                                                         \
        sizeof(::kiln::PluginInfo), ::kiln::kPluginAbi, plugin_name,                              \
        [](::kiln::Registry* registry, void (*fail)(void*, const char*), void* context) -> bool { \
          try {                                                                                   \
            const ::absl::Status status = fill_function(*registry);                               \
            if (!status.ok()) fail(context, ::kiln::message_of(status).c_str());                  \
            return status.ok();                                                                   \
          } catch (const std::exception& e) {                                                     \
            fail(context, e.what());                                                              \
          } catch (...) {                                                                         \
            fail(context, "an exception that is no std::exception");                              \
          }                                                                                       \
          return false;                                                                           \
        }};                                                                                       \
    return &info;                                                                                 \
  }

#endif  // KILN_PLUGIN_H_
