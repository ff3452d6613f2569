#include "jit/engine.h"
#include "jit/hermetic.h"

#include <absl/strings/str_format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace kiln::jit {
namespace {

// std::to_chars and not printf: the host's locale must not reach generated code.
std::string render(std::int64_t value) {
  // The most negative number has no literal of its own: minus applies to one that does not fit.
  if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807-1)";
  std::array<char, 24> text{};
  return std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

std::string render(double value) {
  std::array<char, 48> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::fabs(value),
                                 std::chars_format::hex)
                       .ptr;
  return std::string(std::signbit(value) ? "-0x" : "0x") + std::string(text.data(), end);
}

absl::StatusOr<std::string> render(const NamedConstant& constant) {
  if (const auto* integer = std::get_if<std::int64_t>(&constant.value)) return render(*integer);
  if (const auto* flag = std::get_if<bool>(&constant.value)) return std::string(*flag ? "1" : "0");
  if (const auto* number = std::get_if<double>(&constant.value)) {
    if (std::isfinite(*number)) return render(*number);
    return absl::InvalidArgumentError(
        absl::StrFormat("constant %s: must be finite: got %s", constant.name,
                        std::isnan(*number) ? "nan" : (*number > 0 ? "inf" : "-inf")));
  }
  const DType dtype = std::get<DType>(constant.value);
  if (size_of(dtype) == 0) {
    return absl::InvalidArgumentError(absl::StrFormat("constant %s: must be a dtype: got number %d",
                                                      constant.name, static_cast<int>(dtype)));
  }
  if (dtype == DType::boolean)
    return std::string("kiln::boolean");  // "bool" is a word of the language
  return "kiln::" + std::string(to_string(dtype));
}

}  // namespace

absl::StatusOr<std::string> render_constant(const NamedConstant& constant) {
  if (!is_identifier(constant.name)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("constant: its name must be a C identifier: got '%s'", constant.name));
  }
  KILN_ASSIGN_OR_RETURN(const std::string value, render(constant));
  return constant.name + "=" + value;
}

}  // namespace kiln::jit
