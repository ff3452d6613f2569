#ifndef KILN_TESTS_JIT_WORKER_TEST_UTIL_H_
#define KILN_TESTS_JIT_WORKER_TEST_UTIL_H_

#include <kiln/log.h>

#include "jit/nvrtc_compiler.h"
#include "jit/worker_compiler.h"
#include "tests/jit/jit_test_util.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kiln::jit {

inline WorkerOptions worker_options(int workers = 2) {
  return {.worker = KILN_COMPILE_WORKER_FILE, .max_workers = workers};
}

inline std::unique_ptr<WorkerCompiler> real_workers(WorkerOptions options = worker_options()) {
  const NvrtcOptions nvrtc = options.nvrtc;
  return make_worker_compiler(std::move(options), make_nvrtc_compiler(nvrtc));
}

// A lean program of its own.
inline CompileRequest numbered_request(int number) {
  CompileRequest request = lean_request("sm_90");
  request.defines = {"FACTOR=" + std::to_string(number + 1)};
  return request;
}

// One whose front end does not end in any time that matters: two to the 40th instantiations.
inline CompileRequest endless_request() {
  CompileRequest request = lean_request("sm_90");
  request.headers.clear();
  request.defines.clear();
  request.source_name = "kernel_sources/test/endless.cu";
  request.source =
      "template <int depth, long path> struct Tree {\n"
      "  static constexpr int value = Tree<depth - 1, 2 * path % 1000000007>::value +\n"
      "                               Tree<depth - 1, (2 * path + 1) % 1000000007>::value;\n"
      "};\n"
      "template <long path> struct Tree<0, path> { static constexpr int value = 1; };\n"
      "extern \"C\" __global__ void lean(int* p) { *p = Tree<40, 1>::value; }\n";
  return request;
}

// Child processes of this one that have not ended, by number.
inline std::vector<pid_t> live_children() {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat;
    std::getline(std::ifstream(entry.path() / "stat"), stat);
    const std::size_t paren = stat.rfind(')');
    if (paren == std::string::npos || paren + 4 >= stat.size()) continue;
    const char state = stat[paren + 2];
    if (state == 'Z' || std::strtol(stat.c_str() + paren + 4, nullptr, 10) != ::getpid()) continue;
    children.push_back(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)));
  }
  return children;
}

// Waits for `condition`, at most 20 s.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

// Keeps the log's lines of level warning and above while it lives.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      if (level < LogLevel::warning) return;
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
    });
  }
  ~Warnings() { set_log_sink({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace kiln::jit

#endif  // KILN_TESTS_JIT_WORKER_TEST_UTIL_H_
