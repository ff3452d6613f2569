#include "runtime/plugins.h"

#include <kiln/plugin.h>

#include "runtime/guarded.h"
#include "runtime/registering.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <system_error>

namespace kiln::internal {
namespace {

namespace fs = std::filesystem;

void add_file(std::vector<std::string>& files, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  const std::string file = error ? path.string() : real.string();
  if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
}

void add_folder(std::vector<std::string>& files, const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".so") found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& path : found) add_file(files, path);
}

absl::Status skipped(const std::string& why) { return absl::FailedPreconditionError(why); }

}  // namespace

std::string install_backend_dir() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&install_backend_dir), &info) == 0 ||
      info.dli_fname == nullptr)
    return "";
  std::error_code error;
  const fs::path self = fs::canonical(info.dli_fname, error);
  return error ? "" : (self.parent_path() / "kiln" / "backends").string();
}

std::vector<std::string> find_plugins(const RuntimeOptions& options) {
  std::vector<std::string> files;
  for (const std::string& entry : options.backend_path) {
    std::error_code error;
    if (fs::is_directory(entry, error))
      add_folder(files, entry);
    else
      add_file(files, entry);
  }
  const std::string installed = options.load_installed_backends ? install_backend_dir() : "";
  if (!installed.empty()) add_folder(files, installed);
  return files;
}

bool is_disabled(const RuntimeOptions& options, const std::string& file) {
  const std::string leaf = fs::path(file).filename().string();
  const auto is_word = [&](const std::string& name) {
    for (std::size_t at = leaf.find(name); at != std::string::npos; at = leaf.find(name, at + 1)) {
      const std::string_view before = std::string_view(leaf).substr(0, at);
      const std::size_t end = at + name.size();
      const auto parts = [](char c) { return c == '_' || c == '-' || c == '.'; };
      const bool starts = before.empty() || before == "lib" || parts(before.back());
      if (starts && (end == leaf.size() || parts(leaf[end]))) return true;
    }
    return false;
  };
  return std::any_of(
      options.disabled_backends.begin(), options.disabled_backends.end(),
      [&](const std::string& name) { return !name.empty() && (name == file || is_word(name)); });
}

namespace {

using Plugin = const PluginInfo* (*)();

absl::Status fill_from(Plugin plugin, Registry& staged) {
  const PluginInfo* info = plugin();
  if (info == nullptr || info->struct_bytes < sizeof(PluginInfo)) {
    return skipped(absl::StrFormat(
        "its kiln_plugin describes an older or damaged PluginInfo: want at least %d bytes, got %d",
        sizeof(PluginInfo), info == nullptr ? 0 : info->struct_bytes));
  }
  if (info->abi == nullptr || info->fill == nullptr)
    return skipped("its kiln_plugin describes no ABI or no function that fills a registry");
  if (std::strcmp(info->abi, kPluginAbi) != 0) {
    return skipped(absl::StrFormat("was built for another ABI: want \"%s\", got \"%s\"", kPluginAbi,
                                   info->abi));
  }
  std::string reason;
  const bool filled = info->fill(
      &staged,
      [](void* context, const char* message) {
        *static_cast<std::string*>(context) = message == nullptr ? "" : message;
      },
      &reason);
  if (filled) return absl::OkStatus();
  return skipped("its registration failed: " + (reason.empty() ? "no reason given" : reason));
}

}  // namespace

absl::StatusOr<Registry> open_plugin(const std::string& file) {
  Registry staged(file);
  const StagingScope scope(staged);
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = dlerror();
    return skipped(
        absl::StrFormat("cannot be opened: %s", error == nullptr ? "no reason given" : error));
  }
  const auto plugin = reinterpret_cast<Plugin>(dlsym(handle, "kiln_plugin"));
  if (plugin == nullptr) return skipped("has no function kiln_plugin (made by KILN_PLUGIN)");
  // KILN_PLUGIN lets no exception out; a function made by hand may.
  const absl::Status filled =
      guarded("its registration", [&] { return fill_from(plugin, staged); });
  if (!filled.ok()) return skipped(message_of(filled));
  return staged;
}

}  // namespace kiln::internal
