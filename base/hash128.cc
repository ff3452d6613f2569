#include "base/hash128.h"

#include <xxhash.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

void append_hex(std::string& out, std::uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(value >> shift) & 15];
}

std::optional<std::uint64_t> parse_hex(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<std::uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + static_cast<std::uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

Hash128 hash128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::string to_hex(const Hash128& hash) {
  std::string out;
  out.reserve(32);
  append_hex(out, hash.high);
  append_hex(out, hash.low);
  return out;
}

std::optional<Hash128> parse_hash128(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  const auto high = parse_hex(hex.substr(0, 16));
  const auto low = parse_hex(hex.substr(16));
  if (!high || !low) return std::nullopt;
  return Hash128{*high, *low};
}

void append_length_prefixed(std::string& out, std::string_view bytes) {
  std::uint64_t size = bytes.size();
  for (int i = 0; i < 8; ++i, size >>= 8) out += static_cast<char>(size & 255);
  out.append(bytes);
}

}  // namespace kiln
