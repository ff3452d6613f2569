#include "runtime/call_generators.h"

#include "runtime/json_text.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace kiln::internal {
namespace {

constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max();
using Path = Json::json_pointer;

// Values one after the other: one that is written down, or numbers that are counted and not kept.
struct Part {
  Json value;
  std::int64_t from = 0, step = 0, times = 0, count = 1;  // step or times: a range

  Json at(std::int64_t i) const {
    if (step > 0) return from + i * step;
    if (times == 0) return value;
    std::int64_t number = from;
    for (; i > 0; --i) number *= times;
    return number;
  }
};

// What varies: variables that vary together, or one place of the call.
struct Axis {
  std::vector<std::string> names;
  std::optional<Path> place;
  std::vector<Part> parts;

  std::int64_t count() const {
    std::int64_t sum = 0;
    for (const Part& part : parts) sum = part.count > kMany - sum ? kMany : sum + part.count;
    return sum;
  }
  Json at(std::int64_t i) const {
    std::size_t part = 0;
    for (; i >= parts[part].count; ++part) i -= parts[part].count;
    return parts[part].at(i);
  }
};

absl::Status wrong(std::string_view field, std::string_view want, const Json& got) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s must be %s: got %s", field, want, show(got)));
}

bool is_range(const Json& json) { return json.is_object() && json.contains("from"); }
bool varies(const Json& json) { return json.is_array() || is_range(json); }

// {"from":1,"to":64}, with "step" or "times".
absl::StatusOr<Part> read_range(const std::string& field, const Json& json) {
  const auto refuse = [&] {
    return wrong(field,
                 "a range: {\"from\":A,\"to\":B} of integers with A <= B, and \"step\":S of at "
                 "least 1, or \"times\":T of at least 2 with A at least 1",
                 json);
  };
  const auto number = [&](const char* name) -> std::optional<std::int64_t> {
    const auto at = json.find(name);
    if (at == json.end() || !at->is_number_integer()) return std::nullopt;
    if (at->is_number_unsigned() && at->get<std::uint64_t>() > static_cast<std::uint64_t>(kMany))
      return std::nullopt;
    return at->get<std::int64_t>();
  };
  const bool by_step = json.contains("step"), by_times = json.contains("times");
  const std::optional<std::int64_t> from = number("from"), to = number("to");
  const std::optional<std::int64_t> by = by_times ? number("times") : number("step");
  if (json.size() != (by_step || by_times ? 3u : 2u) || !from || !to || *from > *to)
    return refuse();
  if ((by_step || by_times) && !by) return refuse();
  Part part;
  part.from = *from;
  if (by_times) {
    if (*by < 2 || *from < 1) return refuse();
    part.times = *by;
    for (std::int64_t at = *from; at <= *to / *by; at *= *by) ++part.count;
    return part;
  }
  part.step = by.value_or(1);
  if (part.step < 1) return refuse();
  const auto span = static_cast<std::uint64_t>(*to) - static_cast<std::uint64_t>(*from);
  const std::uint64_t count = span / static_cast<std::uint64_t>(part.step);
  part.count =
      count >= static_cast<std::uint64_t>(kMany) ? kMany : static_cast<std::int64_t>(count) + 1;
  return part;
}

// The values of a list, whose items may be ranges, or of one range.
absl::StatusOr<std::vector<Part>> read_parts(const std::string& field, const Json& json) {
  std::vector<Part> parts;
  const Json list = json.is_array() ? json : Json::array({json});
  for (const Json& item : list) {
    if (is_range(item)) {
      KILN_ASSIGN_OR_RETURN(Part part, read_range(field, item));
      parts.push_back(std::move(part));
    } else {
      parts.emplace_back();
      parts.back().value = item;
    }
  }
  if (parts.empty()) return wrong(field, "a list of at least one value", json);
  return parts;
}

bool is_name(std::string_view name) {
  const auto is_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !name.empty() && (name[0] < '0' || name[0] > '9') &&
         std::all_of(name.begin(), name.end(), is_word);
}

// One field of "for": "n" with values, or "n,m" with lists of two values each.
absl::StatusOr<Axis> read_variable(const std::string& key, const Json& values) {
  const std::string field = "for." + key;
  Axis axis;
  axis.names = absl::StrSplit(key, ',');
  for (const std::string& name : axis.names) {
    if (!is_name(name)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("for must name variables, as \"n\" or \"n,m\": got \"%s\"", key));
    }
  }
  if (!varies(values)) return wrong(field, "a list of values or a range", values);
  KILN_ASSIGN_OR_RETURN(axis.parts, read_parts(field, values));
  if (axis.names.size() == 1) return axis;
  for (const Part& part : axis.parts) {
    const bool fits = part.step == 0 && part.times == 0 && part.value.is_array() &&
                      part.value.size() == axis.names.size();
    if (!fits)
      return wrong(field, absl::StrFormat("a list of lists of %d values", axis.names.size()),
                   values);
  }
  return axis;
}

class LineReader {
 public:
  LineReader(const Json& line, const Signature& signature) : line_(line), signature_(signature) {}

  absl::StatusOr<std::vector<Axis>> axes() {
    if (const auto variables = line_.find("for"); variables != line_.end()) {
      if (!variables->is_object() || variables->empty())
        return wrong("for", "an object of variables and their values", *variables);
      for (const auto& [key, values] : variables->items()) {
        KILN_ASSIGN_OR_RETURN(Axis axis, read_variable(key, values));
        axes_.push_back(std::move(axis));
      }
    }
    KILN_RETURN_IF_ERROR(check_names());
    KILN_RETURN_IF_ERROR(read_params("params", signature_.params));
    KILN_RETURN_IF_ERROR(read_params("execution_params", signature_.execution_params));
    KILN_RETURN_IF_ERROR(read_tensors("inputs", signature_.inputs));
    KILN_RETURN_IF_ERROR(read_tensors("outputs", signature_.outputs));
    KILN_RETURN_IF_ERROR(read_place(Path("/device"), "device"));
    return std::move(axes_);
  }

 private:
  // Each variable is named once and used.
  absl::Status check_names() {
    std::set<std::string> used;
    for (const auto& [name, value] : line_.items()) {
      if (name != "for") collect(value, used);
    }
    std::set<std::string> named;
    for (const Axis& axis : axes_) {
      for (const std::string& name : axis.names) {
        if (!named.insert(name).second || !used.contains(name)) {
          return absl::InvalidArgumentError(
              absl::StrFormat("for: a variable must be named once and used as \"$%s\": got %s",
                              name, used.contains(name) ? "it twice" : "no use of it"));
        }
      }
    }
    for (const std::string& name : used) {
      if (axes_.empty() || named.contains(name)) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("\"$%s\" must be a variable of \"for\": want one of %s", name,
                          absl::StrJoin(named, ", ")));
    }
    return absl::OkStatus();
  }

  static void collect(const Json& json, std::set<std::string>& used) {
    if (json.is_string()) {
      const auto& text = json.get_ref<const std::string&>();
      if (text.starts_with('$') && !text.starts_with("$$")) used.insert(text.substr(1));
    } else if (json.is_structured()) {
      for (const Json& item : json) collect(item, used);
    }
  }

  // A place where one value is expected.
  absl::Status read_place(const Path& place, const std::string& field) {
    if (!line_.contains(place) || !varies(line_.at(place))) return absl::OkStatus();
    Axis axis;
    axis.names = {field};
    axis.place = place;
    KILN_ASSIGN_OR_RETURN(axis.parts, read_parts(field, line_.at(place)));
    axes_.push_back(std::move(axis));
    return absl::OkStatus();
  }
  // A place where a list is expected: its items are places.
  absl::Status read_list(const Path& place, const std::string& field) {
    if (!line_.contains(place) || !line_.at(place).is_array()) return absl::OkStatus();
    for (std::size_t i = 0; i < line_.at(place).size(); ++i)
      KILN_RETURN_IF_ERROR(read_place(place / i, absl::StrFormat("%s[%d]", field, i)));
    return absl::OkStatus();
  }

  absl::Status read_params(const std::string& group, const std::vector<ParamDecl>& decls) {
    for (const ParamDecl& decl : decls) {
      const Path place = Path("/" + group) / decl.name;
      const std::string field = group + "." + decl.name;
      KILN_RETURN_IF_ERROR(decl.type == ParamType::integers ? read_list(place, field)
                                                            : read_place(place, field));
    }
    return absl::OkStatus();
  }

  absl::Status read_tensors(const std::string& group, const std::vector<TensorParam>& params) {
    const auto tensors = line_.find(group);
    if (tensors == line_.end() || !tensors->is_object()) return absl::OkStatus();
    for (const auto& [name, tensor] : tensors->items()) {
      const bool is_known =  // others are told when the call is read
          std::any_of(params.begin(), params.end(),
                      [&, &name = name](const auto& p) { return p.name == name; });
      if (!is_known || !tensor.is_object()) continue;
      const Path place = Path("/" + group) / name;
      const std::string field = group + "." + name;
      KILN_RETURN_IF_ERROR(read_place(place / "dtype", field + ".dtype"));
      KILN_RETURN_IF_ERROR(read_list(place / "shape", field + ".shape"));
      KILN_RETURN_IF_ERROR(read_list(place / "strides", field + ".strides"));
      KILN_RETURN_IF_ERROR(read_place(place / "align", field + ".align"));
    }
    return absl::OkStatus();
  }

  const Json& line_;
  const Signature& signature_;
  std::vector<Axis> axes_;
};

// `json` with each "$name" replaced; "$$" begins a text that begins with "$".
void substitute(Json& json, const std::vector<std::pair<std::string, Json>>& values) {
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    if (text.starts_with("$$")) {
      json = text.substr(1);
    } else if (text.starts_with('$')) {
      for (const auto& [name, value] : values) {
        if (text.substr(1) == name) json = value;
      }
    }
  } else if (json.is_structured()) {
    for (Json& item : json) substitute(item, values);
  }
}

GeneratedCall make_call(const Json& line, const std::vector<Axis>& axes, std::int64_t number) {
  std::vector<std::int64_t> at(axes.size());
  for (std::size_t i = axes.size(); i-- > 0; number /= axes[i].count())
    at[i] = number % axes[i].count();
  GeneratedCall made;
  made.call = line;
  std::vector<std::pair<std::string, Json>> variables;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Json value = axes[i].at(at[i]);
    if (axes[i].place) made.call[*axes[i].place] = value;
    for (std::size_t k = 0; k < axes[i].names.size(); ++k) {
      const Json& one = axes[i].names.size() == 1 ? value : value[k];
      if (!axes[i].place) variables.emplace_back(axes[i].names[k], one);
      made.variant +=
          absl::StrFormat("%s%s=%s", made.variant.empty() ? "" : ", ", axes[i].names[k], show(one));
    }
  }
  made.call.erase("for");
  if (!variables.empty()) substitute(made.call, variables);
  return made;
}

}  // namespace

absl::StatusOr<GeneratedCalls> generate_calls(const Json& line, const Signature& signature,
                                              std::int64_t limit) {
  KILN_ASSIGN_OR_RETURN(const std::vector<Axis> axes, LineReader(line, signature).axes());
  GeneratedCalls generated;
  generated.is_one_call = axes.empty();
  for (const Axis& axis : axes) {
    const std::int64_t count = axis.count();
    generated.count = generated.count > kMany / count ? kMany : generated.count * count;
  }
  if (generated.count > limit && !generated.is_one_call) return generated;
  for (std::int64_t i = 0; i < generated.count; ++i)
    generated.calls.push_back(make_call(line, axes, i));
  return generated;
}

}  // namespace kiln::internal
