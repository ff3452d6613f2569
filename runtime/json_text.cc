#include "runtime/json_text.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
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

// Builds a value from what the parser reports. The library's own builder looks for each field among
// those before it, which is quadratic, and keeps the last of two equal ones without a word.
class Builder {
 public:
  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(Json::number_integer_t value) { return put(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return put(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t& value) { return put(std::move(value)); }
  bool start_object(std::size_t) {
    names_.emplace_back();
    return open(Json::object());
  }
  bool key(std::string& name) {
    if (!names_.back().insert(name).second && twice_.empty()) twice_ = name;
    key_ = std::move(name);
    return true;
  }
  bool end_object() {
    names_.pop_back();
    return close();
  }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& e) {
    is_malformed_ = dynamic_cast<const Json::parse_error*>(&e) != nullptr;
    byte_ = byte;
    what_ = e.what();
    return false;
  }

  Json& value() { return root_; }
  const std::string& twice() const { return twice_; }
  absl::Status error(std::string_view text) const;

 private:
  bool put(Json value) {
    add(std::move(value));
    return true;
  }
  bool open(Json value) {
    open_.push_back(add(std::move(value)));  // stays there: what holds it does not grow meanwhile
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  Json* add(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    auto& fields = open_.back()->get_ref<Json::object_t&>();
    fields.emplace_back(std::move(key_), std::move(value));
    return &fields.back().second;
  }

  Json root_;
  std::vector<Json*> open_;
  std::vector<std::unordered_set<std::string>> names_;  // of the objects that are open
  std::string key_, twice_, what_;
  std::size_t byte_ = 0;
  bool is_malformed_ = false;
};

// What the parser says, without its own prefix ("[json.exception...] parse error at line 1, column
// 8: ...").
std::string reason_of(std::string_view what) {
  const std::size_t column = what.find(", column ");
  const std::size_t colon = column == std::string_view::npos ? column : what.find(": ", column);
  return std::string(colon == std::string_view::npos ? what : what.substr(colon + 2));
}

absl::Status Builder::error(std::string_view text) const {
  if (is_malformed_) {
    return absl::InvalidArgumentError(
        absl::StrFormat("JSON: %s must be well-formed: %s", place(text, byte_), reason_of(what_)));
  }
  const std::size_t bracket = what_.find("] ");  // a number too large for a double
  return absl::InvalidArgumentError(
      "JSON: must be well-formed: " +
      (bracket == std::string::npos ? what_ : what_.substr(bracket + 2)));
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
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return builder.error(text);
  if (!builder.twice().empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("JSON: a field must be given once: got \"%s\" twice", builder.twice()));
  }
  return std::move(builder.value());
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
