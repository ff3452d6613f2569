#include "jit/hermetic.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <string>

namespace kiln::jit {
namespace {

constexpr std::array<std::string_view, 3> kClockMacros = {"__DATE__", "__TIME__", "__TIMESTAMP__"};

// Options that name files, or that Kiln itself derives from the request. Compared as prefixes.
constexpr std::array kRefusedOptions = std::to_array<std::string_view>({"-I",
                                                                        "--include-path",
                                                                        "-include",
                                                                        "--pre-include",
                                                                        "-isystem",
                                                                        "-iquote",
                                                                        "-idirafter",
                                                                        "-isysroot",
                                                                        "--sysroot",
                                                                        "-imacros",
                                                                        "-arch",
                                                                        "--gpu-architecture",
                                                                        "-march",
                                                                        "-mcpu=native",
                                                                        "-mtune=native",
                                                                        "-o",
                                                                        "-x",
                                                                        "-B",
                                                                        "-specs",
                                                                        "--specs",
                                                                        "-wrapper",
                                                                        "-fplugin",
                                                                        "-pch",
                                                                        "--pch",
                                                                        "--create-pch",
                                                                        "--use-pch",
                                                                        "-fprofile-use",
                                                                        "-time",
                                                                        "--time",
                                                                        "-fdevice-time-trace",
                                                                        "--fdevice-time-trace"});

bool is_word(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool contains_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(line[at - 1])) && (end == line.size() || !is_word(line[end])))
      return true;
  }
  return false;
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

// The name that an #include line gives; empty for any other line.
std::string_view included_name(std::string_view line) {
  skip_blanks(line);
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_blanks(line);
  if (!line.starts_with("include")) return {};
  line.remove_prefix(7);
  skip_blanks(line);
  if (line.empty() || (line.front() != '"' && line.front() != '<')) return {};
  const char close = line.front() == '"' ? '"' : '>';
  line.remove_prefix(1);
  return line.substr(0, line.find(close));
}

bool goes_up(std::string_view name) {
  return name == ".." || name.starts_with("../") || name.find("/../") != name.npos ||
         name.ends_with("/..");
}

absl::Status at(std::string_view file, std::size_t line, std::string_view rule,
                std::string_view got) {
  return with_kind(
      absl::InvalidArgumentError(absl::StrFormat("%s:%d: %s: got %s", file, line, rule, got)),
      ErrorKind::compile_error);
}

absl::Status check_line(std::string_view file, std::size_t number, std::string_view line) {
  if (line.find("__") != line.npos) {
    for (const std::string_view macro : kClockMacros) {
      if (contains_word(line, macro)) {
        return at(file, number, "a source must not depend on when it is compiled", macro);
      }
    }
  }
  const std::string_view name = included_name(line);
  if (name.starts_with('/') || goes_up(name)) {
    return at(file, number, "an include must name a header that the program lists", name);
  }
  return absl::OkStatus();
}

absl::Status check_text(std::string_view file, std::string_view text) {
  if (text.find('\0') != text.npos) {
    return at(file,
              1 + static_cast<std::size_t>(
                      std::count(text.begin(), text.begin() + text.find('\0'), '\n')),
              "a source must hold no zero byte", "one");
  }
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    KILN_RETURN_IF_ERROR(check_line(file, number, text.substr(0, end)));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return absl::OkStatus();
}

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), is_word);
}

absl::Status check_source_name(std::string_view name) {
  bool ok = !name.empty() && name.find('\0') == name.npos;
  for (std::string_view rest = name; ok && !rest.empty();) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    ok = !part.empty() && part != "." && part != ".." && slash != rest.size() - 1;
    rest.remove_prefix(slash == rest.npos ? rest.size() : slash + 1);
  }
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("source name: must be a relative path without '.' and '..': got '%s'", name));
}

absl::Status check_hermetic(const CompileRequest& request) {
  KILN_RETURN_IF_ERROR(check_source_name(request.source_name));
  KILN_RETURN_IF_ERROR(check_text(request.source_name, request.source));
  for (const auto& [name, contents] : request.headers) {
    KILN_RETURN_IF_ERROR(check_source_name(name));
    KILN_RETURN_IF_ERROR(check_text(name, contents));
  }
  for (const std::string& define : request.defines) {
    if (!is_identifier(std::string_view(define).substr(0, define.find('=')))) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: a define must read NAME=VALUE: got '%s'", request.source_name, define));
    }
    KILN_RETURN_IF_ERROR(check_text("define " + define, define));
  }
  for (const std::string& option : request.options) {
    const auto refused = [&](std::string_view prefix) {
      return std::string_view(option).starts_with(prefix);
    };
    if (!option.starts_with('-') || option.find('\0') != option.npos ||
        std::any_of(kRefusedOptions.begin(), kRefusedOptions.end(), refused)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: a compiler option must name no file and must not be one that Kiln sets: got '%s'",
          request.source_name, option));
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln::jit
