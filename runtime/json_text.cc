#include "runtime/json_text.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace kiln::internal {
namespace {

// "line 1, column 8" of a byte of `text`, both counted from 1.
std::string place(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return absl::StrFormat("line %d, column %d", line, std::max<std::size_t>(column, 1));
}

// What the parser says, without its own prefix ("[json.exception...] parse error at line 1, column
// 8: ...").
std::string reason_of(std::string_view what) {
  const std::size_t column = what.find(", column ");
  const std::size_t colon = column == std::string_view::npos ? column : what.find(": ", column);
  return std::string(colon == std::string_view::npos ? what : what.substr(colon + 2));
}

}  // namespace

absl::Status check_json_text(std::string_view text) {
  constexpr int kDeepest = 100;
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("JSON: %s must be text: got a NUL", place(text, at + 1)));
    }
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
      continue;
    }
    in_string = c == '"';
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepest) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "JSON: %s must be nested at most %d deep: got one more", place(text, at + 1), kDeepest));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> parse_json(std::string_view text) {
  KILN_RETURN_IF_ERROR(check_json_text(text));
  // The library keeps the last of two equal fields without a word, so they are counted while it
  // parses.
  std::vector<std::set<std::string>> open;
  std::string twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second &&
        twice.empty()) {
      twice = value.get<std::string>();
    }
    return true;
  };
  try {
    Json json = Json::parse(text.begin(), text.end(), watch);
    if (!twice.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("JSON: a field must be given once: got \"%s\" twice", twice));
    }
    return json;
  } catch (const Json::parse_error& e) {
    return absl::InvalidArgumentError(absl::StrFormat("JSON: %s must be well-formed: %s",
                                                      place(text, e.byte), reason_of(e.what())));
  } catch (const Json::exception& e) {  // a number too large for a double
    const std::string_view what = e.what();
    const std::size_t bracket = what.find("] ");
    return absl::InvalidArgumentError(
        absl::StrFormat("JSON: must be well-formed: %s",
                        std::string(bracket == what.npos ? what : what.substr(bracket + 2))));
  }
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string show(const Json& json) {
  constexpr std::size_t kLongest = 60;
  std::string text = dump(json);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace kiln::internal
