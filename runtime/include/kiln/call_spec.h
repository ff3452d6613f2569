#ifndef KILN_CALL_SPEC_H_
#define KILN_CALL_SPEC_H_

#include <kiln/device.h>
#include <kiln/export.h>
#include <kiln/status.h>
#include <kiln/words.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

// Call specs: the immutable facts of a call that choose and build an implementation. A call spec is
// a plain aggregate that lists its fields once:
//
//   struct LayerNormCall {
//     std::int64_t n = 0;
//     double eps = 1e-5;
//     DType dtype = DType::float16;
//     KILN_CALL_SPEC(LayerNormCall, n, eps, dtype)
//   };
//
// From the list come equality, the in-memory hash, the words of the identity, text and JSON. A
// field that the list forgets, or that is mutable or has no stable value, does not compile. Fields
// hold shapes, dtypes and semantic parameters; never tensor contents, tuning policy or priorities.
// KILN_CALL_SPEC adds the field `where`.
namespace kiln::inline v1 {

// Where a call runs. `device` comes from the op. The stated facts (0: not stated) are for `key_for`
// and tools, so that an answer does not depend on the machine that gives it; `kernel_for` refuses
// them.
struct Where {
  Device device{};
  int arch = 0;
  int sm_count = 0;
  std::int64_t smem_budget = 0;
  friend bool operator==(const Where&, const Where&) = default;
};
// Stated facts, for tests: `LayerNormCall{.n = 4096, .where = stated(90, 132)}`.
constexpr Where stated(int arch, int sm_count = 0, std::int64_t smem_budget = 0) {
  return {{}, arch, sm_count, smem_budget};
}

template <class C, class M>
struct Field {
  std::string_view name;
  M C::*member;
};
template <class C, class M>
Field(const char*, M C::*) -> Field<C, M>;

// The bare name of a type, without its namespaces.
template <class T>
constexpr std::string_view type_name_of() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  const std::size_t args = text.find('<');
  const std::size_t colons = text.substr(0, args).rfind("::");
  return colons == std::string_view::npos ? text : text.substr(colons + 2);
}

namespace spec_detail {
struct AnyField {
  template <class T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor): stands for any field
};
template <class T, std::size_t... I>
consteval bool braces(std::index_sequence<I...>) {
  return requires { T{((void)I, AnyField{})...}; };
}
template <class T, std::size_t N = 40>
consteval std::size_t arity() {
  if constexpr (N == 0)
    return 0;
  else if constexpr (braces<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return arity<T, N - 1>();
}
template <class... C, class... M>
consteval bool all_key_fields(const std::tuple<Field<C, M>...>*) {
  return (KeyField<M> && ...);
}
template <class... C, class... M>
consteval std::size_t sum_words(const std::tuple<Field<C, M>...>*) {
  return (std::size_t{0} + ... + FieldCodec<M>::words);
}
}  // namespace spec_detail

template <class S>
concept CallSpec = std::is_class_v<S> && requires(const S& s) {
  S::fields();
  { s.where } -> std::convertible_to<Where>;
};

// The compile-time checks of a call spec; every registration runs them.
template <class S>
consteval bool check_call_spec() {
  static_assert(CallSpec<S>, "a call spec lists its fields with KILN_CALL_SPEC");
  static_assert(std::is_aggregate_v<S>, "a call spec is a plain aggregate");
  constexpr bool can_key =
      spec_detail::all_key_fields(static_cast<decltype(S::fields())*>(nullptr));
  static_assert(can_key, "cannot key a dispatch cache: a field is mutable or has no stable value");
  if constexpr (can_key) {
    static_assert(spec_detail::arity<S>() == std::tuple_size_v<decltype(S::fields())> + 1,
                  "KILN_CALL_SPEC must list every field: a field that is missing here would be "
                  "missing in the key");
  }
  return true;
}

// Words of a call spec's fields; the device takes one more, at the end.
template <CallSpec S>
constexpr std::size_t words_of =
    spec_detail::sum_words(static_cast<decltype(S::fields())*>(nullptr));

template <CallSpec S>
using CallWords = std::array<std::uint64_t, words_of<S> + 1>;

constexpr std::uint64_t device_word(const Device& device) {
  return static_cast<std::uint64_t>(device.type.id()) << 8 | device.index;
}

template <CallSpec S>
constexpr CallWords<S> to_words(const S& call) {
  CallWords<S> words;
  std::size_t at = 0;
  std::apply(
      [&](const auto&... f) {
        ((FieldCodec<std::remove_cvref_t<decltype(call.*(f.member))>>::write(&words[at],
                                                                             call.*(f.member)),
          at += FieldCodec<std::remove_cvref_t<decltype(call.*(f.member))>>::words),
         ...);
      },
      S::fields());
  words[at] = device_word(call.where.device);
  return words;
}

template <CallSpec S>
constexpr bool same_call(const S& a, const S& b) {
  return a.where == b.where && to_words(a) == to_words(b);
}

}  // namespace kiln::inline v1

#define KILN_PARENS_ ()
#define KILN_EXPAND_(...) KILN_EXPAND3_(KILN_EXPAND3_(KILN_EXPAND3_(__VA_ARGS__)))
#define KILN_EXPAND3_(...) KILN_EXPAND2_(KILN_EXPAND2_(KILN_EXPAND2_(__VA_ARGS__)))
#define KILN_EXPAND2_(...) KILN_EXPAND1_(KILN_EXPAND1_(KILN_EXPAND1_(__VA_ARGS__)))
#define KILN_EXPAND1_(...) __VA_ARGS__
#define KILN_FIELDS_(T, f, ...) \
  ::kiln::Field{#f, &T::f} __VA_OPT__(, KILN_FIELDS_AGAIN_ KILN_PARENS_(T, __VA_ARGS__))
#define KILN_FIELDS_AGAIN_() KILN_FIELDS_

// KILN_CALL_SPEC(Type, field, ...): up to 27 fields, in the order they are declared.
#define KILN_CALL_SPEC(T, ...)                                     \
  ::kiln::Where where{};                                           \
  static constexpr auto fields() {                                 \
    return std::tuple{KILN_EXPAND_(KILN_FIELDS_(T, __VA_ARGS__))}; \
  }                                                                \
  friend bool operator==(const T& a, const T& b) { return ::kiln::same_call(a, b); }

#endif  // KILN_CALL_SPEC_H_
