#include "base/printable.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace kiln {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Bytes of the character that `text` begins with; 0: it is no character of UTF-8.
std::size_t length_of_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80    ? 1
                             : lead < 0xc2  ? 0
                             : lead < 0xe0  ? 2
                             : lead < 0xf0  ? 3
                             : lead <= 0xf4 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  return std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length),
                     continues)
             ? length
             : 0;
}

// Those of ASCII, and those of U+0080 to U+009F, among which there is one that begins a command to
// a terminal as an escape does.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return (first < ' ' && first != '\n' && first != '\t') || first == 127;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

void append_line(std::string& out, std::string_view line, std::size_t longest) {
  if (line.size() <= longest) {
    out += line;
    return;
  }
  std::size_t head = longest * 2 / 3, tail = line.size() - (longest - longest * 2 / 3);
  while (head > 0 && continues(line[head])) --head;
  while (tail < line.size() && continues(line[tail])) ++tail;
  out += line.substr(0, head);
  out += absl::StrFormat(" ...(%d bytes left out)... ", tail - head);
  out += line.substr(tail);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    if (length == 0 || is_control(character)) {
      for (const char c : character)
        out += absl::StrFormat("\\x%02x", static_cast<unsigned char>(c));
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t longest) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    append_line(out, text.substr(0, end), longest);
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace kiln
