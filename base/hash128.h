#ifndef KILN_BASE_HASH128_H_
#define KILN_BASE_HASH128_H_

#include <kiln/export.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

// A 128-bit XXH3 value: stable across processes, shared objects and machines. Immutable value.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;  // NOLINT(modernize-use-nullptr): no pointer
};

KILN_EXPORT Hash128 hash128(std::string_view bytes);
// 32 lower-case hex digits, high half first; and back (nullopt for anything else).
KILN_EXPORT std::string to_hex(const Hash128& hash);
KILN_EXPORT std::optional<Hash128> parse_hash128(std::string_view hex);

// For unordered containers: the value is already well mixed.
struct Hash128Hasher {
  std::size_t operator()(const Hash128& h) const { return static_cast<std::size_t>(h.low); }
};

// Appends `bytes` preceded by its length as 8 little-endian bytes, so that no two lists of fields
// concatenate to the same bytes.
KILN_EXPORT void append_length_prefixed(std::string& out, std::string_view bytes);

}  // namespace kiln

#endif  // KILN_BASE_HASH128_H_
