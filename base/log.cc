#include "base/log.h"

#include "base/mutex.h"
#include "base/printable.h"

#include <absl/base/const_init.h>
#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_set.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kiln {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Of KILN_LOG_LEVEL; who reads the other variables says what is not understood
// (runtime/options.cc).
spdlog::level::level_enum level_from_environment() {
  const char* text = std::getenv("KILN_LOG_LEVEL");
  const std::string_view name = text == nullptr ? "" : text;
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "error") return spdlog::level::err;
  if (name == "off") return spdlog::level::off;
  return spdlog::level::warn;
}

LogSink make_default_sink() {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("kiln", std::move(sink));
  logger->set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%n] [%l] %v");
  logger->set_level(level_from_environment());
  logger->flush_on(spdlog::level::warn);
  return [logger](LogLevel level, std::string_view message) {
    const std::string text = printable(shortened(message));
    logger->log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
  };
}

constexpr std::size_t kMaxSaid = 4096;

// The sink in force and what log_once has said. Never destroyed: threads may log while the process
// exits.
struct LogState {
  Mutex mutex;
  std::shared_ptr<const LogSink> sink ABSL_GUARDED_BY(mutex);
  absl::flat_hash_set<std::string> said ABSL_GUARDED_BY(mutex);
};

LogState& state() {
  static LogState* const instance = new LogState;
  return *instance;
}

std::shared_ptr<const LogSink> current_sink() {
  LogState& s = state();
  MutexLock lock(s.mutex);
  if (s.sink == nullptr) s.sink = std::make_shared<const LogSink>(make_default_sink());
  return s.sink;
}

}  // namespace

inline namespace v1 {

void set_log_sink(LogSink sink) {
  std::shared_ptr<const LogSink> next;
  if (sink) next = std::make_shared<const LogSink>(std::move(sink));
  LogState& s = state();
  MutexLock lock(s.mutex);
  s.sink.swap(next);
}

}  // namespace v1

void log(LogLevel level, std::string_view message) {
  // A host's sink may throw and memory may be short; neither may reach the caller.
  try {
    (*current_sink())(level, message);
  } catch (...) {
  }
}

void log_once(LogLevel level, std::string_view what, std::string_view message) {
  try {
    LogState& s = state();
    MutexLock lock(s.mutex);
    // What names each of many builds must not be kept for ever; rather is a line said again.
    if (s.said.size() >= kMaxSaid) s.said.clear();
    if (!s.said.insert(std::string(what)).second) return;
  } catch (...) {
    return;
  }
  log(level, message);
}

}  // namespace kiln
