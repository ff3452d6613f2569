#include "runtime/call_json.h"

#include "runtime/call_generators.h"
#include "runtime/json_text.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <limits>

// Reading calls; call_json_write.cc writes them.
namespace kiln::internal {
namespace {

absl::Status wrong(std::string_view field, std::string_view want, const Json& got) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s must be %s: got %s", field, want, show(got)));
}

absl::Status check_fields(std::string_view what, const Json& object,
                          std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return wrong(what, "an object", object);
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string names;
    for (std::string_view field : known) names += (names.empty() ? "" : ", ") + std::string(field);
    return absl::InvalidArgumentError(
        absl::StrFormat("%s must have only known fields: want %s, got \"%s\"", what, names, name));
  }
  return absl::OkStatus();
}

const Json* find_field(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it == object.end() ? nullptr : &*it;
}

absl::StatusOr<std::int64_t> read_integer(std::string_view field, const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(value);
    }
  } else if (json.is_number_integer()) {
    return json.get<std::int64_t>();
  }
  return wrong(field, "an integer below 2^63", json);
}

absl::StatusOr<std::vector<std::int64_t>> read_integers(std::string_view field, const Json& json) {
  if (!json.is_array()) return wrong(field, "a list of integers", json);
  std::vector<std::int64_t> values;
  for (const Json& item : json) {
    KILN_ASSIGN_OR_RETURN(const std::int64_t value, read_integer(field, item));
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<Dims> read_dims(std::string_view field, const Json& json) {
  KILN_ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, read_integers(field, json));
  const absl::StatusOr<Dims> dims = Dims::from(values);
  if (!dims.ok())
    return wrong(field, absl::StrFormat("a list of at most %d integers", kMaxRank), json);
  return *dims;
}

absl::StatusOr<FieldValue> read_value(std::string_view field, const Json& json) {
  if (json.is_boolean()) return FieldValue(json.get<bool>());
  if (json.is_string()) return FieldValue(json.get<std::string>());
  if (json.is_number_float()) return FieldValue(json.get<double>());
  if (json.is_array()) {
    KILN_ASSIGN_OR_RETURN(std::vector<std::int64_t> values, read_integers(field, json));
    return FieldValue(std::move(values));
  }
  if (json.is_number_integer()) {
    KILN_ASSIGN_OR_RETURN(const std::int64_t value, read_integer(field, json));
    return FieldValue(value);
  }
  return wrong(field, "a number, a text, a boolean or a list of integers", json);
}

absl::StatusOr<ParamValues> read_params(const std::string& field, const Json* json) {
  ParamValues values;
  if (json == nullptr) return values;
  if (!json->is_object()) return wrong(field, "an object", *json);
  for (const auto& [name, item] : json->items()) {
    KILN_ASSIGN_OR_RETURN(FieldValue value, read_value(field + "." + name, item));
    values.push_back({name, std::move(value)});
  }
  return values;
}

absl::StatusOr<ArgSpec> read_tensor(const std::string& field, const TensorParam& param,
                                    const Json& json, const Device& device) {
  KILN_RETURN_IF_ERROR(check_fields(field, json, {"dtype", "shape", "strides", "align"}));
  const Json* dtype = find_field(json, "dtype");
  const Json* shape = find_field(json, "shape");
  if (dtype == nullptr || shape == nullptr)
    return wrong(field, "an object with \"dtype\" and \"shape\"", json);
  TensorSpec spec;
  spec.device = param.host ? Device{DeviceType::cpu(), 0} : device;
  const std::optional<DType> parsed =
      dtype->is_string() ? parse_dtype(dtype->get<std::string>()) : std::nullopt;
  if (!parsed) return wrong(field + ".dtype", "the name of a dtype, as \"float16\"", *dtype);
  spec.dtype = *parsed;
  KILN_ASSIGN_OR_RETURN(spec.shape, read_dims(field + ".shape", *shape));
  for (std::int64_t extent : spec.shape) {
    if (extent < 0)
      return wrong(field + ".shape", "a list of integers that are not negative", *shape);
  }
  ArgSpec arg = contiguous_arg(spec);
  if (const Json* strides = find_field(json, "strides")) {
    KILN_ASSIGN_OR_RETURN(arg.strides, read_dims(field + ".strides", *strides));
  }
  if (const Json* align = find_field(json, "align")) {
    KILN_ASSIGN_OR_RETURN(const std::int64_t bytes, read_integer(field + ".align", *align));
    if (bytes < 1 || bytes > 16 || (bytes & (bytes - 1)) != 0)
      return wrong(field + ".align", "1, 2, 4, 8 or 16", *align);
    arg.alignment = static_cast<int>(bytes);
  }
  return arg;
}

// The tensors that `json` gives for `params`, by name; null is a tensor that is not passed.
absl::StatusOr<std::vector<std::optional<ArgSpec>>> read_tensors(
    const std::string& field, const std::vector<TensorParam>& params, const Json* json,
    const Device& device) {
  std::vector<std::optional<ArgSpec>> args(params.size());
  if (json == nullptr) return args;
  if (!json->is_object()) return wrong(field, "an object", *json);
  for (const auto& [name, item] : json->items()) {
    const auto param = std::find_if(params.begin(), params.end(),
                                    [&name = name](const auto& p) { return p.name == name; });
    if (param == params.end()) {
      std::string names;
      for (const TensorParam& known : params) names += (names.empty() ? "" : ", ") + known.name;
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s must name tensors of the op: want %s, got \"%s\"", field, names, name));
    }
    if (item.is_null()) continue;
    KILN_ASSIGN_OR_RETURN(args[static_cast<std::size_t>(param - params.begin())],
                          read_tensor(field + "." + name, *param, item, device));
  }
  return args;
}

absl::StatusOr<std::string> read_op(const Json& json, std::string_view given) {
  const Json* field = find_field(json, "op");
  if (field == nullptr && given.empty()) {
    return absl::InvalidArgumentError("call: \"op\" must name an op: got none");
  }
  if (field == nullptr) return std::string(given);
  if (!field->is_string()) return wrong("call: \"op\"", "the name of an op", *field);
  const auto op = field->get<std::string>();
  if (!given.empty() && op != given) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "call: \"op\" must be the op that is asked for: want %s, got %s", given, op));
  }
  return op;
}

absl::StatusOr<std::vector<std::string>> read_tags(const Json* json) {
  std::vector<std::string> tags;
  if (json == nullptr) return tags;
  if (!json->is_array()) return wrong("tags", "a list of words", *json);
  for (const Json& tag : *json) {
    if (!tag.is_string()) return wrong("tags", "a list of words", *json);
    tags.push_back(tag.get<std::string>());
  }
  return tags;
}

absl::StatusOr<std::optional<Device>> read_device(const Json* json) {
  if (json == nullptr) return std::nullopt;
  if (!json->is_string()) return wrong("device", "a text as \"cuda:0\"", *json);
  KILN_ASSIGN_OR_RETURN(const Device device, parse_device(json->get<std::string>()));
  return device;
}

absl::Status read_args(const Json& json, const Signature& signature, ParsedCall& call) {
  const Device device = call.device.value_or(Device{});
  KILN_ASSIGN_OR_RETURN(call.args.inputs, read_tensors("inputs", signature.inputs,
                                                       find_field(json, "inputs"), device));
  KILN_ASSIGN_OR_RETURN(call.args.outputs, read_tensors("outputs", signature.outputs,
                                                        find_field(json, "outputs"), device));
  KILN_ASSIGN_OR_RETURN(const std::vector<TensorSpec> inferred,
                        infer_outputs(signature, call.params, call.args.inputs));
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    if (!call.args.outputs[i]) call.args.outputs[i] = contiguous_arg(inferred[i]);
  }
  return check_call(signature, call.params, call.args);
}

absl::StatusOr<ParsedCall> read_call(const Json& json, const FindSignature& find_signature,
                                     std::string_view op) {
  KILN_RETURN_IF_ERROR(check_fields(
      "call", json, {"op", "params", "execution_params", "inputs", "outputs", "device", "tags"}));
  ParsedCall call;
  KILN_ASSIGN_OR_RETURN(call.op, read_op(json, op));
  const absl::StatusOr<const Signature*> found = find_signature(call.op);
  if (!found.ok()) return absl::InvalidArgumentError(message_of(found.status()));
  const Signature& signature = **found;
  KILN_ASSIGN_OR_RETURN(call.tags, read_tags(find_field(json, "tags")));
  KILN_ASSIGN_OR_RETURN(call.device, read_device(find_field(json, "device")));
  KILN_ASSIGN_OR_RETURN(const ParamValues params,
                        read_params("params", find_field(json, "params")));
  KILN_ASSIGN_OR_RETURN(call.params, complete_params(call.op, signature.params, params));
  KILN_ASSIGN_OR_RETURN(const ParamValues execution,
                        read_params("execution_params", find_field(json, "execution_params")));
  KILN_ASSIGN_OR_RETURN(call.execution_params,
                        complete_params(call.op, signature.execution_params, execution));
  KILN_RETURN_IF_ERROR(read_args(json, signature, call));
  return call;
}

bool is_left_out(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  return first == std::string_view::npos || line[first] == '#';
}

}  // namespace

absl::StatusOr<ParsedCall> parse_call(std::string_view text, const FindSignature& find_signature,
                                      std::string_view op) {
  KILN_ASSIGN_OR_RETURN(const Json json, parse_json(text));
  return read_call(json, find_signature, op);
}

absl::StatusOr<std::vector<CallLine>> parse_call_line(std::string_view text,
                                                      const FindSignature& find_signature,
                                                      std::string_view op, std::int64_t limit) {
  KILN_ASSIGN_OR_RETURN(const Json json, parse_json(text));
  if (!json.is_object()) return wrong("call", "an object", json);
  KILN_ASSIGN_OR_RETURN(const std::string name, read_op(json, op));
  const absl::StatusOr<const Signature*> signature = find_signature(name);
  if (!signature.ok()) return absl::InvalidArgumentError(message_of(signature.status()));
  KILN_ASSIGN_OR_RETURN(GeneratedCalls generated, generate_calls(json, **signature, limit));
  if (generated.calls.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "lines that stand for many calls must make at most %d more: got %d; raise the limit if "
        "they are all meant (--max-calls)",
        limit, generated.count));
  }
  std::vector<CallLine> calls;
  for (const GeneratedCall& one : generated.calls) {
    absl::StatusOr<ParsedCall> call = read_call(one.call, find_signature, op);
    if (!call.ok() && !one.variant.empty()) return annotate(call.status(), "with " + one.variant);
    if (!call.ok()) return call.status();
    calls.push_back({0, *std::move(call), one.variant});
  }
  return calls;
}

absl::StatusOr<std::vector<CallLine>> parse_calls(std::string_view text, std::string_view name,
                                                  const FindSignature& find_signature,
                                                  std::int64_t limit) {
  std::vector<CallLine> calls;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (is_left_out(line)) continue;
    absl::StatusOr<std::vector<CallLine>> made = parse_call_line(line, find_signature, "", limit);
    if (!made.ok()) {
      const bool is_whole = Json::accept(line);
      return absl::Status(
          made.status().code(),
          absl::StrFormat("%s:%d: %s%s", name, number, message_of(made.status()),
                          is_whole ? "" : "; a calls file holds one object a line"));
    }
    if (!made->front().variant.empty()) limit -= static_cast<std::int64_t>(made->size());
    for (CallLine& call : *made) {
      call.line = number;
      calls.push_back(std::move(call));
    }
  }
  if (calls.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: must hold at least one call: got %d lines without any", name, number));
  }
  return calls;
}

ParsedCall on_device(const ParsedCall& call, const Signature& signature, const Device& device) {
  ParsedCall moved = call;
  moved.device = device;
  const auto move = [&device](std::vector<std::optional<ArgSpec>>& args,
                              const std::vector<TensorParam>& params) {
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i] && !params[i].host) args[i]->spec.device = device;
    }
  };
  move(moved.args.inputs, signature.inputs);
  move(moved.args.outputs, signature.outputs);
  return moved;
}

}  // namespace kiln::internal
