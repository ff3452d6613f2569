#include "jit/worker_compiler.h"

#include <algorithm>
#include <climits>
#include <dlfcn.h>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace kiln::jit {
namespace {

constexpr const char* kName = "/kiln-compile-worker";

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash);
}

std::string executable() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return size <= 0 ? "" : std::string(path, static_cast<std::size_t>(size));
}

// The file that this function was loaded from, absolute; for an executable its argv[0] may not be.
std::string own_file() {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<const void*>(&find_compile_worker), &info) == 0 ||
      info.dli_fname == nullptr)
    return "";
  char path[PATH_MAX];
  return ::realpath(info.dli_fname, path) == nullptr ? "" : path;
}

}  // namespace

std::string find_compile_worker(const std::string& named) {
  if (!named.empty()) return named;
  const auto exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  if (const std::string own = folder_of(own_file()); !own.empty()) {
    for (const char* at : {"", "/../bin", "/../../bin", "/../libexec/kiln"}) {
      if (exists(own + at + kName)) return own + at + kName;
    }
  }
  const std::string beside = folder_of(executable()) + kName;
  return exists(beside) ? beside : "";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

}  // namespace kiln::jit
