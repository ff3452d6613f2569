#ifndef KILN_ANY_CALL_H_
#define KILN_ANY_CALL_H_

#include <kiln/call_spec.h>
#include <kiln/export.h>
#include <kiln/words.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Call specs whose type is not known where they are handled: by the dispatcher, by tools, between a
// plugin and the library.
namespace kiln::inline v1 {

struct NamedValue {
  std::string name;
  FieldValue value;
};

// A call spec's type, erased. Two copies of one type (a plugin's and the library's) are the same if
// name and fingerprint are.
struct CallSpecType {
  std::string_view name;
  std::uint64_t fingerprint = 0;  // over the names and types of the fields
  std::size_t words = 0;          // the device's included
  std::vector<NamedValue> (*values)(const void* call, bool only_set);
  const Where& (*where)(const void* call);
  void (*write)(const void* call, std::uint64_t* words);
  // Sets one field; false when there is none of that name or the value does not fit.
  bool (*set)(void* call, std::string_view name, const FieldValue& value);
  std::shared_ptr<void> (*copy)(const void* call, const Where& where);
};

constexpr bool same_type(const CallSpecType& a, const CallSpecType& b) {
  return a.fingerprint == b.fingerprint && a.name == b.name;
}

constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t h = 0xcbf29ce484222325ull) {
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

namespace spec_detail {
template <class M>
FieldValue show(const M& value) {
  return FieldCodec<M>::show(value);
}
template <class S>
constexpr std::uint64_t fingerprint() {
  std::uint64_t h = fnv1a(type_name_of<S>());
  std::apply(
      [&](const auto&... f) {
        ((h = fnv1a(type_name_of<std::remove_cvref_t<decltype(std::declval<S>().*(f.member))>>(),
                    fnv1a(f.name, h))),
         ...);
      },
      S::fields());
  return h;
}
template <class S>
std::vector<NamedValue> values(const void* erased, bool only_set) {
  const S& call = *static_cast<const S*>(erased);
  const S unset{};
  std::vector<NamedValue> out;
  auto one = [&](const auto& f) {
    FieldValue value = show(call.*(f.member));
    if (!only_set || value != show(unset.*(f.member)))
      out.push_back({std::string(f.name), std::move(value)});
  };
  std::apply([&](const auto&... f) { (one(f), ...); }, S::fields());
  return out;
}
template <class S>
bool set(void* erased, std::string_view name, const FieldValue& value) {
  S& call = *static_cast<S*>(erased);
  bool done = false;
  auto one = [&](const auto& f) {
    using M = std::remove_cvref_t<decltype(call.*(f.member))>;
    if (f.name == name) done = FieldCodec<M>::read(value, call.*(f.member));
  };
  std::apply([&](const auto&... f) { (one(f), ...); }, S::fields());
  return done;
}
}  // namespace spec_detail

template <CallSpec S>
const CallSpecType& call_spec_type() {
  static constexpr CallSpecType type{
      .name = type_name_of<S>(),
      .fingerprint = spec_detail::fingerprint<S>(),
      .words = words_of<S> + 1,
      .values = &spec_detail::values<S>,
      .where = [](const void* c) -> const Where& { return static_cast<const S*>(c)->where; },
      .write =
          [](const void* c, std::uint64_t* out) {
            const CallWords<S> words = to_words(*static_cast<const S*>(c));
            for (std::size_t i = 0; i < words.size(); ++i) out[i] = words[i];
          },
      .set = &spec_detail::set<S>,
      .copy = [](const void* c, const Where& where) -> std::shared_ptr<void> {
        auto copy = std::make_shared<S>(*static_cast<const S*>(c));
        copy->where = where;
        return copy;
      },
  };
  return type;
}

// A borrowed call spec of any type.
struct CallRef {
  const void* data = nullptr;
  const CallSpecType* type = nullptr;

  CallRef() = default;
  CallRef(const void* call, const CallSpecType& call_type) : data(call), type(&call_type) {}
  template <CallSpec S>
  CallRef(const S& call)  // NOLINT(google-explicit-constructor): a view
      : data(&call), type(&call_spec_type<S>()) {}
  const Where& where() const { return type->where(data); }
};

// An owned call spec of any type; copies share it.
class AnyCall {
 public:
  AnyCall() = default;
  template <CallSpec S>
  AnyCall(const S& call)  // NOLINT(google-explicit-constructor): a value of any type
      : AnyCall(CallRef(call)) {}
  explicit AnyCall(CallRef call)
      : data_(call.type->copy(call.data, call.where())), type_(call.type) {}
  operator CallRef() const {  // NOLINT(google-explicit-constructor): a view of it
    return CallRef(data_.get(), *type_);
  }
  CallRef ref() const { return CallRef(data_.get(), *type_); }
  // The same call on another device, or with other stated facts.
  AnyCall at(const Where& where) const {
    AnyCall moved;
    moved.data_ = type_->copy(data_.get(), where);
    moved.type_ = type_;
    return moved;
  }

 private:
  std::shared_ptr<void> data_;
  const CallSpecType* type_ = nullptr;
};

// "LayerNormCall n=4096 dtype=float16 on cuda:0", without fields nobody set.
KILN_EXPORT std::string to_string(CallRef call);

}  // namespace kiln::inline v1

#endif  // KILN_ANY_CALL_H_
