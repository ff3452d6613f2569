#include <kiln/options.h>
#include <kiln/status.h>

#include "base/log.h"
#include "cache/store.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>

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

// What is not understood is named, with what would be, and changes nothing.
void complain(const char* name, const std::string& wants, const std::string& got) {
  log(LogLevel::warning,
      absl::StrFormat("%s wants %s: got %s, which changes nothing", name, wants, got));
}

// The value, one of `words`; the first of them where it is not set or another.
std::string read_word(const char* name, std::initializer_list<std::string_view> words) {
  std::string value = env(name);
  if (value.empty()) return std::string(*words.begin());
  if (std::find(words.begin(), words.end(), value) != words.end()) return value;
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  complain(name, "one of " + list, value);
  return std::string(*words.begin());
}

bool read_switch(const char* name, bool by_default) {
  const std::string value = env(name);
  if (value.empty()) return by_default;
  for (const std::string_view word : {"1", "on", "true", "yes"}) {
    if (value == word) return true;
  }
  for (const std::string_view word : {"0", "off", "false", "no"}) {
    if (value == word) return false;
  }
  complain(name, "1 (on) or 0 (off)", value);
  return by_default;
}

// A folder that must be there.
std::string read_folder(const char* name) {
  std::string path = env(name);
  std::error_code error;
  if (!path.empty() && !std::filesystem::is_directory(path, error))
    complain(name, "a folder that can be read", path);
  return path;
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
      complain("KILN_SELECT", "only=KEYS, exclude=KEYS or prefer=KEYS, parted by ';'", part);
      continue;
    }
    *list = split(part.substr(equals + 1), ',');
  }
}

// What is not a size is warned of, and `value` stays as it was.
void read_bytes(const char* name, std::int64_t& value) {
  const std::string text = env(name);
  if (const absl::StatusOr<std::int64_t> limit = cache::parse_bytes(text); limit.ok()) {
    value = *limit;
  } else if (!text.empty()) {
    complain(name, "a number of bytes, also with K, M, G or T behind it", text);
  }
}

void read_cache(RuntimeOptions& options) {
  read_bytes("KILN_CACHE_MAX_BYTES", options.cache_max_bytes);
  options.cache_layers = split(env("KILN_CACHE_LAYERS"), ':');
  options.cache_group_shared = read_word("KILN_CACHE_SHARED", {"off", "group"}) == "group";
  options.cache_write_behind = read_switch("KILN_CACHE_WRITE_BEHIND", true);
  options.trusted_keys = env("KILN_TRUSTED_KEYS");
  options.signing_key_file = env("KILN_SIGNING_KEY");
  options.any_compiler = read_word("KILN_COMPILER_MATCH", {"same", "any"}) == "any";
}

// A number from `least` to `most`; what it was before for anything else.
template <class Number>
void read_number(const char* name, Number& value, Number least, Number most) {
  const std::string text = env(name);
  if (text.empty()) return;
  Number read = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (is_number && read >= least && read <= most) {
    value = read;
  } else {
    complain(name, absl::StrFormat("a number from %g to %g", double(least), double(most)), text);
  }
}

constexpr double kInstant = 1e-3, kForEver = 1e9;  // seconds
constexpr int kMostJobs = 4096;

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
  read_number("KILN_CACHE_REMOTE_TIMEOUT", remote.timeout_seconds, kInstant, kForEver);
  read_bytes("KILN_CACHE_REMOTE_MAX_BYTES", remote.max_bytes);
  remote.read_only = !read_switch("KILN_CACHE_REMOTE_WRITE", true);
}

void read_compiling(RuntimeOptions& options) {
  read_number("KILN_JOBS", options.jobs, 0, kMostJobs);
  options.compile_worker = env("KILN_COMPILE_WORKER");
  read_number("KILN_COMPILE_DEADLINE", options.compile_deadline_seconds, 0.0, kForEver);
  read_number("KILN_COMPILE_LIMIT", options.compile_limit_seconds, kInstant, kForEver);
  read_bytes("KILN_COMPILE_MEMORY", options.compile_memory_bytes);
}

}  // namespace

RuntimeOptions RuntimeOptions::from_environment() {
  RuntimeOptions options;
  options.cache_dir = cache::default_cache_dir();
  const std::string policy = read_word("KILN_COMPILE", {"block", "async", "forbid"});
  options.policy = policy == "forbid"  ? CompilePolicy::forbid
                   : policy == "async" ? CompilePolicy::async
                                       : CompilePolicy::block;
  options.strict_cache = read_switch("KILN_STRICT", false);
  options.use_tuned = read_switch("KILN_TUNED", true);
  read_cache(options);
  read_remote(options.cache_remote);
  read_compiling(options);
  read_number("KILN_MAX_ENTRIES", options.max_entries, std::int64_t{0}, std::int64_t{1} << 40);
  options.kernel_path = read_folder("KILN_KERNEL_PATH");
  options.nvrtc = env("KILN_NVRTC");
  options.cuda_home = env("CUDA_HOME");
  if (options.cuda_home.empty()) options.cuda_home = env("CUDA_PATH");
  options.cxx = env("KILN_CXX");
  options.backend_path = split(env("KILN_BACKEND_PATH"), ':');
  options.disabled_backends = split(env("KILN_DISABLE_BACKENDS"), ',');
  options.record_calls_file = env("KILN_RECORD_CALLS");
  options.trace_file = env("KILN_TRACE");
  (void)read_word("KILN_LOG_LEVEL",
                  {"warning", "debug", "info", "error", "off"});  // the sink's own
  options.log_selection = read_word("KILN_LOG", {"off", "select"}) == "select";
  read_select(options);
  return options;
}

}  // namespace kiln::inline v1
