#ifndef KILN_SHARED_TEXT_H_
#define KILN_SHARED_TEXT_H_

#include <compare>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::inline v1 {

// A text that never changes, held by all copies together: a copy costs nothing, and copies are
// found equal without a look at their bytes. For sources, which are long and in many places.
class SharedText {
 public:
  SharedText() = default;  // NOLINTBEGIN(google-explicit-constructor): used as a string is
  SharedText(std::string text)
      : text_(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}
  SharedText(std::string_view text) : SharedText(std::string(text)) {}
  SharedText(const char* text) : SharedText(std::string(text)) {}

  const std::string& str() const { return text_ == nullptr ? empty_text() : *text_; }
  operator const std::string&() const { return str(); }
  operator std::string_view() const { return str(); }  // NOLINTEND(google-explicit-constructor)
  const char* c_str() const { return str().c_str(); }
  std::size_t size() const { return str().size(); }
  // Another text for this holder alone.
  SharedText& operator+=(std::string_view more) {
    return *this = SharedText(str() + std::string(more));
  }

  friend bool operator==(const SharedText& a, const SharedText& b) {
    return a.text_ == b.text_ || a.str() == b.str();
  }
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view>
  friend bool operator==(const SharedText& a, const Text& b) {
    return a.str() == std::string_view(b);
  }
  friend std::strong_ordering operator<=>(const SharedText& a, const SharedText& b) {
    return a.str() <=> b.str();
  }

 private:
  static const std::string& empty_text() {
    static const std::string* const text = new std::string;
    return *text;
  }
  std::shared_ptr<const std::string> text_;  // null: empty
};

}  // namespace kiln::inline v1

#endif  // KILN_SHARED_TEXT_H_
