#ifndef KILN_IDENTITY_H_
#define KILN_IDENTITY_H_

#include <kiln/any_call.h>
#include <kiln/export.h>
#include <kiln/words.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace kiln::inline v1 {

class Kernel;

// The facts that change what is built, as words, and their 128-bit hash. Words are compared, so two
// identities with one hash are still two. Immutable value.
class KILN_EXPORT BuildIdentity {
 public:
  BuildIdentity() = default;
  BuildIdentity(std::vector<std::uint64_t> words, std::string text);
  const std::vector<std::uint64_t>& words() const { return words_; }
  // 32 hex digits: XXH3-128 over the words, the same in every process and on every machine.
  const std::string& hash() const { return hash_; }
  // "(4096, 1e-05, float16)", for people.
  const std::string& text() const { return text_; }
  friend bool operator==(const BuildIdentity& a, const BuildIdentity& b) {
    return a.words_ == b.words_;
  }

 private:
  std::vector<std::uint64_t> words_;
  std::string hash_;
  std::string text_;
};

// What an implementation's `entry_for` returns: the build identity and the build function, made
// from ONE list of facts, so that nothing can be built in that the identity lacks:
//
//   static Entry<LayerNormKernel> entry_for(const LayerNormCall& c) { return
//   Entry<LayerNormKernel>(c.n, c.eps, c.dtype); }
//
// A fact is a KeyField or a whole call spec (its device index is no fact). The build function makes
// a K from copies of the facts; it compiles and loads nothing.
template <class K>
class Entry {
 public:
  template <class... A>
  explicit Entry(const A&... facts) : build_([facts...] { return std::make_unique<K>(facts...); }) {
    static_assert(std::is_constructible_v<K, const A&...>,
                  "K must have a constructor that takes the facts of its Entry");
    (append(facts), ...);
    text_ += ")";
  }
  BuildIdentity identity() const { return BuildIdentity(words_, text_); }
  std::unique_ptr<K> build() const { return build_(); }
  const std::function<std::unique_ptr<K>()>& build_function() const { return build_; }

 private:
  template <class A>
  void append(const A& fact) {
    text_ += text_.size() > 1 ? ", " : "";
    if constexpr (CallSpec<A>) {
      const CallWords<A> words = to_words(fact);
      words_.insert(words_.end(), words.begin(), words.end() - 1);
      for (const NamedValue& v : call_spec_type<A>().values(&fact, false)) {
        text_ += (text_.size() > 1 ? " " : "") + v.name + "=" + to_string(v.value);
      }
    } else {
      static_assert(KeyField<A>, "an identity fact must have a stable value");
      const std::size_t at = words_.size();
      words_.resize(at + FieldCodec<A>::words);
      FieldCodec<A>::write(&words_[at], fact);
      text_ += to_string(FieldCodec<A>::show(fact));
    }
  }
  std::function<std::unique_ptr<K>()> build_;
  std::vector<std::uint64_t> words_;
  std::string text_ = "(";
};

}  // namespace kiln::inline v1

#endif  // KILN_IDENTITY_H_
