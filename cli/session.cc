#include "cli/session.h"

#include "runtime/call_json.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace kiln::cli {

Exit exit_for(const absl::Status& status) {
  if (status.ok()) return Exit::ok;
  const bool is_usage = absl::IsInvalidArgument(status) && error_kind(status) == ErrorKind::none;
  return is_usage ? Exit::usage : Exit::cannot_do;
}

namespace {

// What a terminal can show: control characters of a message's values are named, not obeyed.
std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == 127) {
      out += absl::StrFormat("\\x%02x", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void report_error(const Session& session, const absl::Status& status) {
  if (session.json) {
    Json json;
    json["error"]["kind"] = internal::kind_name(status);
    json["error"]["message"] = message_of(status);
    print_json(json);
  }
  std::fprintf(stderr, "kiln: %s\n", printable(message_of(status)).c_str());
}

void print_json(const Json& json) { std::printf("%s\n", internal::dump(json, 2).c_str()); }

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.1f us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.2f ms", seconds * 1e3);
  return absl::StrFormat("%.2f s", seconds);
}

std::string indented(const std::string& text, int spaces) {
  std::string out;
  for (char c : text) {
    out += c;
    if (c == '\n') out.append(static_cast<std::size_t>(spaces), ' ');
  }
  return out;
}

absl::StatusOr<std::string> read_input(const std::string& path) {
  const bool is_stdin = path == "-";
  std::FILE* file = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: must be a file that can be read: %s", path, std::strerror(errno)));
  }
  std::string text;
  char buffer[1 << 16];
  errno = 0;
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file))
    text.append(buffer, count);
  const int saved_errno = errno;
  const bool failed = std::ferror(file) != 0;
  if (!is_stdin) std::fclose(file);
  if (failed) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: must be a file that can be read: %s",
                                                      path, std::strerror(saved_errno)));
  }
  return text;
}

}  // namespace kiln::cli
