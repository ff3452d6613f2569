#include "runtime/shape_pattern.h"

#include <absl/strings/str_format.h>

#include <charconv>

namespace kiln::internal {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || !is_letter(text.front())) return false;
  for (char c : text) {
    if (!is_letter(c) && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

std::optional<ShapeTerm> parse_term(std::string_view text) {
  using Kind = ShapeTerm::Kind;
  ShapeTerm term;
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    const char* const end = text.data() + text.size();
    const auto [parsed_to, error] = std::from_chars(text.data(), end, term.extent);
    if (error != std::errc() || parsed_to != end) return std::nullopt;
    return term;
  }
  term.name = text;
  term.kind = Kind::dim;
  if (text.starts_with("*@")) {
    term.kind = Kind::param_list;
    term.name.remove_prefix(2);
  } else if (text.starts_with('*')) {
    term.kind = Kind::list;
    term.name.remove_prefix(1);
  } else if (text.starts_with('@')) {
    term.kind = Kind::param;
    term.name.remove_prefix(1);
  }
  if (!is_name(term.name)) return std::nullopt;
  return term;
}

Dims one_dim(std::int64_t extent) { return Dims({extent}); }

template <class Pairs>
const auto* find_name(const Pairs& pairs, std::string_view name) {
  for (const auto& pair : pairs) {
    if (pair.first == name) return &pair.second;
  }
  return static_cast<decltype(&pairs.front().second)>(nullptr);
}

}  // namespace

absl::StatusOr<ShapeTerms> parse_shape_pattern(std::string_view pattern) {
  ShapeTerms terms;
  if (trim(pattern).empty()) return terms;
  for (std::string_view rest = pattern;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view text = trim(rest.substr(0, comma));
    const std::optional<ShapeTerm> term = parse_term(text);
    if (!term) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "shape pattern \"%s\": a dimension must be NAME, NUMBER, *NAME, @PARAM or *@PARAM: got "
          "\"%s\"",
          pattern, text));
    }
    terms.push_back(*term);
    if (comma == std::string_view::npos) return terms;
    rest.remove_prefix(comma + 1);
  }
}

absl::StatusOr<std::optional<Dims>> ShapeBindings::resolve(const ShapeTerm& term) const {
  switch (term.kind) {
    case ShapeTerm::Kind::extent:
      return one_dim(term.extent);
    case ShapeTerm::Kind::dim: {
      const std::int64_t* extent = find_name(dims_, term.name);
      if (extent == nullptr) return std::nullopt;
      return one_dim(*extent);
    }
    case ShapeTerm::Kind::list: {
      const Dims* list = find_name(lists_, term.name);
      if (list == nullptr) return std::nullopt;
      return *list;
    }
    case ShapeTerm::Kind::param:
    case ShapeTerm::Kind::param_list:
      break;
  }
  const FieldValue* value = find_param(*params_, term.name);
  if (value != nullptr && term.kind == ShapeTerm::Kind::param) {
    if (const auto* extent = std::get_if<std::int64_t>(value)) return one_dim(*extent);
  }
  if (value != nullptr && term.kind == ShapeTerm::Kind::param_list) {
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(value)) {
      absl::StatusOr<Dims> dims = Dims::from(*list);
      if (!dims.ok()) return annotate(dims.status(), absl::StrFormat("parameter %s", term.name));
      return *dims;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("parameter %s must hold %s, as a shape names it: got %s", term.name,
                      term.kind == ShapeTerm::Kind::param ? "an integer" : "a list of integers",
                      value == nullptr ? "none" : to_string(*value)));
}

absl::StatusOr<bool> ShapeBindings::match(const ShapeTerms& terms, const Dims& shape) {
  // First the lengths: all but one list must be known, and that one takes what is left.
  Lengths lengths;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const std::optional<Dims> dims, resolve(terms[i]));
    lengths.known.push_back(dims);
    if (dims || !terms[i].is_list()) {
      lengths.left -= dims ? dims->size() : 1;
    } else if (lengths.unknown < 0) {
      lengths.unknown = static_cast<int>(i);
    } else {
      return absl::InvalidArgumentError(
          absl::StrFormat("the lengths of *%s and *%s cannot both follow from one shape",
                          terms[static_cast<std::size_t>(lengths.unknown)].name, terms[i].name));
    }
  }
  lengths.left += shape.size();
  if (lengths.left < 0 || (lengths.left > 0 && lengths.unknown < 0)) return false;
  const std::size_t num_dims = dims_.size(), num_lists = lists_.size();
  if (bind(terms, lengths, shape)) return true;
  dims_.resize(num_dims);  // what a shape that does not fit would say is not known
  lists_.resize(num_lists);
  return false;
}

bool ShapeBindings::bind(const ShapeTerms& terms, const Lengths& lengths, const Dims& shape) {
  int at = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const ShapeTerm& term = terms[i];
    if (static_cast<int>(i) == lengths.unknown) {
      const std::int64_t* begin = shape.begin() + at;
      const std::int64_t* end = begin + lengths.left;
      lists_.emplace_back(term.name, Dims(std::span<const std::int64_t>(begin, end)));
      at += lengths.left;
    } else if (term.kind == ShapeTerm::Kind::dim) {  // a name may come twice in one pattern
      const std::int64_t* extent = find_name(dims_, term.name);
      if (extent == nullptr) dims_.emplace_back(term.name, shape[at]);
      if (extent != nullptr && *extent != shape[at]) return false;
      ++at;
    } else {
      for (std::int64_t extent : *lengths.known[i]) {
        if (shape[at++] != extent) return false;
      }
    }
  }
  return true;
}

absl::StatusOr<Dims> ShapeBindings::shape_of(const ShapeTerms& terms) const {
  absl::InlinedVector<std::int64_t, 8> extents;
  for (const ShapeTerm& term : terms) {
    KILN_ASSIGN_OR_RETURN(const std::optional<Dims> dims, resolve(term));
    if (!dims) {
      return absl::InvalidArgumentError(
          absl::StrFormat("dimension %s follows from no tensor that was passed", term.name));
    }
    extents.insert(extents.end(), dims->begin(), dims->end());
  }
  return Dims::from(std::span<const std::int64_t>(extents.data(), extents.size()));
}

std::string ShapeBindings::describe(const ShapeTerms& terms) const {
  std::string text = "[";
  const auto add = [&text](const std::string& part) {
    if (text.size() > 1) text += ", ";
    text += part;
  };
  for (const ShapeTerm& term : terms) {
    const absl::StatusOr<std::optional<Dims>> dims = resolve(term);
    if (dims.ok() && dims->has_value()) {
      for (std::int64_t extent : **dims) add(std::to_string(extent));
    } else {
      add((term.is_list() ? "*" : "") + std::string(term.name));
    }
  }
  return text + "]";
}

}  // namespace kiln::internal
