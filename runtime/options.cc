#include <kiln/options.h>
#include <kiln/status.h>

#include "base/log.h"
#include "cache/store.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>

#include <charconv>
#include <cstdlib>

// The one place that reads KILN_* (but KILN_LOG_LEVEL, which the log's sink reads itself).
namespace kiln::inline v1 {
namespace {

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts = absl::StrSplit(text, separator, absl::SkipWhitespace());
  return parts;
}

bool on(const char* name) {
  const std::string value = env(name);
  return !value.empty() && value != "0" && value != "off";
}

// "only=a,b;exclude=c;prefer=d"
void read_select(RuntimeOptions& options) {
  for (const std::string& part : split(env("KILN_SELECT"), ';')) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    std::vector<std::string>* list = name == "only"      ? &options.only
                                     : name == "exclude" ? &options.exclude
                                     : name == "prefer"  ? &options.prefer
                                                         : nullptr;
    if (list == nullptr || equals == std::string::npos) {
      log(LogLevel::warning,
          "KILN_SELECT wants only=KEYS, exclude=KEYS or prefer=KEYS, parted by ';': got " + part);
      continue;
    }
    *list = split(part.substr(equals + 1), ',');
  }
}

// The value must be one of those named; another is warned of and means the default.
bool is_word(const char* name, std::string_view word, std::string_view default_word) {
  const std::string value = env(name);
  if (value == word) return true;
  if (!value.empty() && value != default_word) {
    log(LogLevel::warning,
        absl::StrFormat("%s wants %s or %s, and is taken as %s: got %s", name, std::string(word),
                        std::string(default_word), std::string(default_word), value));
  }
  return false;
}

// What is not a size is warned of, and `value` stays as it was.
void read_bytes(const char* name, std::int64_t& value) {
  const std::string text = env(name);
  if (const absl::StatusOr<std::int64_t> limit = cache::parse_bytes(text); limit.ok()) {
    value = *limit;
  } else if (!text.empty()) {
    log(LogLevel::warning, std::string(name) + " stays as it was: " + message_of(limit.status()));
  }
}

void read_cache(RuntimeOptions& options) {
  read_bytes("KILN_CACHE_MAX_BYTES", options.cache_max_bytes);
  options.cache_layers = split(env("KILN_CACHE_LAYERS"), ':');
  options.cache_group_shared = is_word("KILN_CACHE_SHARED", "group", "off");
  options.cache_write_behind = env("KILN_CACHE_WRITE_BEHIND") != "0";
  options.trusted_keys = env("KILN_TRUSTED_KEYS");
  options.signing_key_file = env("KILN_SIGNING_KEY");
  options.any_compiler = is_word("KILN_COMPILER_MATCH", "any", "same");
}

// A number of at least 0 from the environment; what it was before for anything else.
template <class Number>
void read_number(const char* name, Number& value) {
  const std::string text = env(name);
  if (text.empty()) return;
  Number read = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error == std::errc() && end == text.data() + text.size() && read >= 0) {
    value = read;
  } else {
    log(LogLevel::warning,
        absl::StrFormat("%s wants a number of at least 0, and stays as it was: got %s", name,
                        text));
  }
}

void read_remote(RemoteCacheOptions& remote) {
  remote.url = env("KILN_CACHE_REMOTE");
  remote.user = env("KILN_CACHE_REMOTE_USER");
  remote.password = env("KILN_CACHE_REMOTE_PASSWORD");
  remote.token = env("KILN_CACHE_REMOTE_TOKEN");
  remote.aws_access_key = env("AWS_ACCESS_KEY_ID");
  remote.aws_secret_key = env("AWS_SECRET_ACCESS_KEY");
  remote.aws_session_token = env("AWS_SESSION_TOKEN");
  remote.aws_region = env("AWS_REGION");
  if (remote.aws_region.empty()) remote.aws_region = env("AWS_DEFAULT_REGION");
  remote.ca_file = env("KILN_CACHE_REMOTE_CA");
  read_number("KILN_CACHE_REMOTE_TIMEOUT", remote.timeout_seconds);
  read_bytes("KILN_CACHE_REMOTE_MAX_BYTES", remote.max_bytes);
  remote.read_only = env("KILN_CACHE_REMOTE_WRITE") == "0";
}

void read_compiling(RuntimeOptions& options) {
  read_number("KILN_JOBS", options.jobs);
  options.compile_worker = env("KILN_COMPILE_WORKER");
  read_number("KILN_COMPILE_DEADLINE", options.compile_deadline_seconds);
  read_number("KILN_COMPILE_LIMIT", options.compile_limit_seconds);
  read_bytes("KILN_COMPILE_MEMORY", options.compile_memory_bytes);
}

}  // namespace

RuntimeOptions RuntimeOptions::from_environment() {
  RuntimeOptions options;
  options.cache_dir = cache::default_cache_dir();
  const std::string policy = env("KILN_COMPILE");
  if (policy == "forbid") {
    options.policy = CompilePolicy::forbid;
  } else if (policy == "async") {
    options.policy = CompilePolicy::async;
  } else if (!policy.empty() && policy != "block") {
    log(LogLevel::warning,
        "KILN_COMPILE wants block, async or forbid, and stays block: got " + policy);
  }
  options.strict_cache = on("KILN_STRICT");
  options.use_tuned = !is_word("KILN_TUNED", "off", "on");
  read_cache(options);
  read_remote(options.cache_remote);
  read_compiling(options);
  read_number("KILN_MAX_ENTRIES", options.max_entries);
  options.kernel_path = env("KILN_KERNEL_PATH");
  options.nvrtc = env("KILN_NVRTC");
  options.cuda_home = env("CUDA_HOME");
  if (options.cuda_home.empty()) options.cuda_home = env("CUDA_PATH");
  options.cxx = env("KILN_CXX");
  options.backend_path = split(env("KILN_BACKEND_PATH"), ':');
  options.disabled_backends = split(env("KILN_DISABLE_BACKENDS"), ',');
  options.record_calls_file = env("KILN_RECORD_CALLS");
  options.trace_file = env("KILN_TRACE");
  options.log_selection = env("KILN_LOG") == "select";
  read_select(options);
  return options;
}

}  // namespace kiln::inline v1
