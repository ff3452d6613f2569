#include <kiln/signature.h>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <variant>

namespace kiln::inline v1 {
namespace {

bool has_type(const FieldValue& value, ParamType type) {
  switch (type) {
    case ParamType::integer:
      return std::holds_alternative<std::int64_t>(value);
    case ParamType::number:
      return std::holds_alternative<double>(value);
    case ParamType::boolean:
      return std::holds_alternative<bool>(value);
    case ParamType::text:
      return std::holds_alternative<std::string>(value);
    case ParamType::integers:
      return std::holds_alternative<std::vector<std::int64_t>>(value);
  }
  return false;
}

std::string names_of(std::span<const ParamDecl> decls) {
  std::string text;
  for (const ParamDecl& decl : decls) text += (text.empty() ? "" : ", ") + decl.name;
  return text.empty() ? "none" : text;
}

// `value` as a parameter of `decl`'s type: an integer is taken for a number.
absl::StatusOr<FieldValue> as_declared(std::string_view op, const ParamDecl& decl,
                                       const FieldValue& value) {
  if (has_type(value, decl.type)) return value;
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer != nullptr && decl.type == ParamType::number) {
    return FieldValue(static_cast<double>(*integer));
  }
  return absl::InvalidArgumentError(absl::StrFormat("%s: parameter %s must be of type %s: got %s",
                                                    op, decl.name, to_string(decl.type),
                                                    to_string(value)));
}

absl::Status check_given(std::string_view op, std::span<const ParamDecl> decls,
                         const ParamValues& given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& name = given[i].name;
    const bool known = std::any_of(decls.begin(), decls.end(),
                                   [&](const ParamDecl& decl) { return decl.name == name; });
    if (!known) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: parameters must be of those it has: want %s, got %s", op, names_of(decls), name));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (given[j].name != name) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: parameter %s must be given once: got %s and %s", op, name,
                          to_string(given[j].value), to_string(given[i].value)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view to_string(ParamType type) {
  switch (type) {
    case ParamType::integer:
      return "integer";
    case ParamType::number:
      return "number";
    case ParamType::boolean:
      return "boolean";
    case ParamType::text:
      return "text";
    case ParamType::integers:
      return "integers";
  }
  return "invalid";
}

const FieldValue* find_param(const ParamValues& values, std::string_view name) {
  for (const NamedValue& value : values) {
    if (value.name == name) return &value.value;
  }
  return nullptr;
}

absl::StatusOr<ParamValues> complete_params(std::string_view op, std::span<const ParamDecl> decls,
                                            const ParamValues& given) {
  KILN_RETURN_IF_ERROR(check_given(op, decls, given));
  ParamValues complete;
  complete.reserve(decls.size());
  for (const ParamDecl& decl : decls) {
    const FieldValue* value = find_param(given, decl.name);
    if (value == nullptr && decl.default_value) value = &*decl.default_value;
    if (value == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: parameter %s must be given: want a value of type %s, got none", op,
                          decl.name, to_string(decl.type)));
    }
    KILN_ASSIGN_OR_RETURN(FieldValue declared, as_declared(op, decl, *value));
    complete.push_back({decl.name, std::move(declared)});
  }
  return complete;
}

ArgSpec contiguous_arg(const TensorSpec& spec, int alignment) {
  return {spec, contiguous_strides(spec.shape), alignment};
}

}  // namespace kiln::inline v1
