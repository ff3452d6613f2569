#include "cli/session.h"

#include "base/printable.h"
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

std::string reason_of(const absl::Status& status) { return shortened(message_of(status)); }

void print_text(std::FILE* file, const std::string& text) {
  const std::string shown = printable(text);
  (void)std::fwrite(shown.data(), 1, shown.size(), file);
}

void print_json(const Json& json) {
  // JSON escapes the control characters of ASCII but one, and those beyond ASCII stand as they are.
  std::string out;
  char last = 0;
  for (const char c : internal::dump(json, 2)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == 127) {
      out += "\\u007f";
    } else if (last == '\xc2' && byte >= 0x80 && byte < 0xa0) {
      out.pop_back();
      out += absl::StrFormat("\\u%04x", byte);
    } else {
      out += c;
    }
    last = c;
  }
  std::printf("%s\n", out.c_str());
}

void report_error(const Session& session, const absl::Status& status) {
  if (session.json) {
    Json json;
    json["error"]["kind"] = internal::kind_name(status);
    json["error"]["message"] = reason_of(status);
    print_json(json);
  }
  tell("kiln: %s\n", reason_of(status));
}

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

absl::StatusOr<std::string> read_input(const std::string& path, std::int64_t most,
                                       const std::string& advice) {
  const bool is_stdin = path == "-";
  std::FILE* file = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: must be a file that can be read: %s", path, std::strerror(errno)));
  }
  std::string text;
  char buffer[1 << 16];
  errno = 0;
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file)) {
    text.append(buffer, count);
    if (static_cast<std::int64_t>(text.size()) > most) break;
  }
  const int saved_errno = errno;
  const bool failed = std::ferror(file) != 0;
  if (!is_stdin) std::fclose(file);
  if (failed) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: must be a file that can be read: %s",
                                                      path, std::strerror(saved_errno)));
  }
  if (static_cast<std::int64_t>(text.size()) > most) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: must hold at most %d bytes: got more%s", path, most, advice));
  }
  return text;
}

}  // namespace kiln::cli
