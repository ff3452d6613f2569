#ifndef KILN_CACHE_BYTES_H_
#define KILN_CACHE_BYTES_H_

#include "base/hash128.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// What the file formats of this folder are made of: unsigned little-endian numbers, hashes, and
// texts with their length.
namespace kiln::cache {

inline void append_number(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i, value >>= 8) out += static_cast<char>(value & 255);
}
inline void append_u32(std::string& out, std::uint32_t value) { append_number(out, value, 4); }
inline void append_u64(std::string& out, std::uint64_t value) { append_number(out, value, 8); }
inline void append_hash(std::string& out, const Hash128& hash) {
  append_u64(out, hash.high);
  append_u64(out, hash.low);
}

// Takes values off the front of a buffer that it borrows; after the first that is not there all of
// them are empty and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }
  void fail() { ok_ = false; }

  std::string_view bytes(std::uint64_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view out = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    return out;
  }
  std::uint64_t number(int width) {
    const std::string_view raw = bytes(static_cast<std::uint64_t>(width));
    std::uint64_t value = 0;
    for (std::size_t i = raw.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::string_view prefixed() { return bytes(u64()); }
  Hash128 hash() {
    const std::uint64_t high = u64();
    return {high, u64()};
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace kiln::cache

#endif  // KILN_CACHE_BYTES_H_
