#ifndef KILN_BASE_PRINTABLE_H_
#define KILN_BASE_PRINTABLE_H_

#include <kiln/export.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

// A line of a message is cut in its middle where it is longer.
inline constexpr std::size_t kLongestLine = 1000;

// `text` as a terminal can show it, whatever file or command line it came from: control characters
// but newline and tab, and bytes that are no UTF-8, are named ("\\x1b"), not obeyed.
KILN_EXPORT std::string printable(std::string_view text);

// `text` with the middle of every line that is longer than `longest` bytes left out, and its length
// in its place. No character of UTF-8 is cut in two.
KILN_EXPORT std::string shortened(std::string_view text, std::size_t longest = kLongestLine);

}  // namespace kiln

#endif  // KILN_BASE_PRINTABLE_H_
