#include <kiln/identity.h>

#include "base/hash128.h"

namespace kiln::inline v1 {

BuildIdentity::BuildIdentity(std::vector<std::uint64_t> words, std::string text)
    : words_(std::move(words)), text_(std::move(text)) {
  std::string bytes;
  bytes.reserve(words_.size() * 8);
  for (std::uint64_t word : words_) {
    for (int shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<char>(word >> shift & 0xff));
  }
  hash_ = to_hex(hash128(bytes));
}

}  // namespace kiln::inline v1
