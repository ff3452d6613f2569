#ifndef KILN_WORDS_H_
#define KILN_WORDS_H_

#include <kiln/device.h>
#include <kiln/dtype.h>
#include <kiln/tensor.h>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// How values become keys. Every key of Kiln is a row of 64-bit words: no padding, no pointers, the
// same on every machine. A `FieldCodec<T>` says how many words a T takes, how they are filled, and
// how a T is shown and read.
namespace kiln::inline v1 {

// A field's value for people and JSON.
using FieldValue = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>>;
KILN_EXPORT std::string to_string(const FieldValue& value);

template <class T>
struct FieldCodec;  // no specialisation: T cannot be part of a key

template <class T>
requires(std::integral<T>) struct FieldCodec<T> {
  static constexpr std::size_t words = 1;
  static constexpr void write(std::uint64_t* out, T v) {
    *out = static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
  }
  static FieldValue show(T v) {
    if constexpr (std::same_as<T, bool>)
      return v;
    else
      return static_cast<std::int64_t>(v);
  }
  static bool read(const FieldValue& f, T& v) {
    if constexpr (std::same_as<T, bool>) {
      const bool* b = std::get_if<bool>(&f);
      if (b != nullptr) v = *b;
      return b != nullptr;
    } else {
      const std::int64_t* i = std::get_if<std::int64_t>(&f);
      if (i == nullptr || !std::in_range<T>(*i)) return false;
      v = static_cast<T>(*i);
      return true;
    }
  }
};

// Floating fields compare and hash by their bits: -0.0 is not 0.0. NaN is refused where a call spec
// is checked.
template <std::floating_point T>
struct FieldCodec<T> {
  static constexpr std::size_t words = 1;
  static constexpr void write(std::uint64_t* out, T v) {
    *out = std::bit_cast<std::uint64_t>(static_cast<double>(v));
  }
  static FieldValue show(T v) { return static_cast<double>(v); }
  static bool read(const FieldValue& f, T& v) {
    if (const double* d = std::get_if<double>(&f))
      v = static_cast<T>(*d);
    else if (const std::int64_t* i = std::get_if<std::int64_t>(&f))
      v = static_cast<T>(*i);
    else
      return false;
    return true;
  }
};

template <class T>
requires(std::is_enum_v<T>) struct FieldCodec<T> {
  static constexpr std::size_t words = 1;
  static constexpr void write(std::uint64_t* out, T v) { *out = static_cast<std::uint64_t>(v); }
  static FieldValue show(T v) {
    if constexpr (requires {
                    { to_string(v) } -> std::convertible_to<std::string_view>;
                  })
      return std::string(to_string(v));
    else
      return static_cast<std::int64_t>(v);
  }
  static bool read(const FieldValue& f, T& v) {
    if constexpr (std::same_as<T, DType>) {
      const std::string* s = std::get_if<std::string>(&f);
      const std::optional<DType> dtype = s == nullptr ? std::nullopt : parse_dtype(*s);
      if (dtype) v = *dtype;
      return dtype.has_value();
    } else {
      const std::int64_t* i = std::get_if<std::int64_t>(&f);
      if (i != nullptr) v = static_cast<T>(*i);
      return i != nullptr;
    }
  }
};

template <>
struct FieldCodec<Dims> {
  static constexpr std::size_t words = kMaxRank + 1;
  static constexpr void write(std::uint64_t* out, const Dims& v) {
    out[0] = static_cast<std::uint64_t>(v.size());
    for (int i = 0; i < kMaxRank; ++i)
      out[i + 1] = i < v.size() ? static_cast<std::uint64_t>(v[i]) : 0;
  }
  static FieldValue show(const Dims& v) { return std::vector<std::int64_t>(v.begin(), v.end()); }
  static bool read(const FieldValue& f, Dims& v) {
    const auto* list = std::get_if<std::vector<std::int64_t>>(&f);
    if (list == nullptr || list->size() > kMaxRank) return false;
    v = Dims(std::span<const std::int64_t>(*list));
    return true;
  }
};

// A value that may be part of a call spec or a build identity: immutable, trivially copied, with a
// codec.
template <class T>
concept KeyField = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && requires {
  FieldCodec<T>::words;
};

// Mixes words into 64 bits; for tables in memory only, never stored.
constexpr std::uint64_t mix_words(const std::uint64_t* words, std::size_t count) {
  constexpr auto fold = [](std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  // Two chains, which a processor works on at the same time.
  std::uint64_t even = 0x9e3779b97f4a7c15ull ^ count, odd = 0xa0761d6478bd642full;
  std::size_t i = 0;
  for (; i + 2 <= count; i += 2) {
    even = fold(even ^ words[i], 0xd6e8feb86659fd93ull);
    odd = fold(odd ^ words[i + 1], 0xe7037ed1a0b428dbull);
  }
  if (i < count) even = fold(even ^ words[i], 0xd6e8feb86659fd93ull);
  return fold(even ^ (odd << 32 | odd >> 32), 0x8ebc6af09c88c6e3ull);
}

}  // namespace kiln::inline v1

#endif  // KILN_WORDS_H_
