#include <kiln/any_call.h>
#include <kiln/words.h>

#include <charconv>
#include <type_traits>

namespace kiln::inline v1 {
namespace {

// The fewest digits that read back as the same double, whatever the locale.
std::string shortest(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : "?";
}

}  // namespace

std::string to_string(const FieldValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return std::to_string(v);
        } else if constexpr (std::is_same_v<T, double>) {
          return shortest(v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return v;
        } else {
          std::string text = "[";
          for (std::size_t i = 0; i < v.size(); ++i) {
            text += (i > 0 ? ", " : "") + std::to_string(v[i]);
          }
          return text + "]";
        }
      },
      value);
}

std::string to_string(CallRef call) {
  std::string text(call.type->name);
  for (const NamedValue& field : call.type->values(call.data, /*only_set=*/true)) {
    text += " " + field.name + "=" + to_string(field.value);
  }
  const Where& where = call.where();
  if (where.arch != 0) text += " arch=" + std::to_string(where.arch);
  if (where.sm_count != 0) text += " sm_count=" + std::to_string(where.sm_count);
  if (where.smem_budget != 0) text += " smem_budget=" + std::to_string(where.smem_budget);
  return text + " on " + to_string(where.device);
}

}  // namespace kiln::inline v1
