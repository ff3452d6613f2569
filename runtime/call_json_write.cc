#include "runtime/call_json.h"
#include "runtime/json_text.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <type_traits>

namespace kiln::internal {
namespace {

Json dims_json(const Dims& dims) {
  Json list = Json::array();
  for (std::int64_t extent : dims) list.push_back(extent);
  return list;
}

Json arg_json(const ArgSpec& arg) {
  Json json;
  json["dtype"] = std::string(to_string(arg.spec.dtype));
  json["shape"] = dims_json(arg.spec.shape);
  if (arg.strides != contiguous_strides(arg.spec.shape)) json["strides"] = dims_json(arg.strides);
  if (arg.alignment != 16) json["align"] = arg.alignment;
  return json;
}

Json params_json(const ParamValues& values) {
  Json json = Json::object();
  for (const NamedValue& value : values) json[value.name] = json_of(value.value);
  return json;
}

Json tensors_json(const std::vector<TensorParam>& params,
                  const std::vector<std::optional<ArgSpec>>& args, bool only_special) {
  Json json = Json::object();
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] && !(only_special && *args[i] == contiguous_arg(args[i]->spec))) {
      json[params[i].name] = arg_json(*args[i]);
    }
  }
  return json;
}

Json decls_json(const std::vector<ParamDecl>& decls) {
  Json list = Json::array();
  for (const ParamDecl& decl : decls) {
    Json json;
    json["name"] = decl.name;
    json["type"] = std::string(to_string(decl.type));
    if (decl.default_value) json["default"] = json_of(*decl.default_value);
    list.push_back(std::move(json));
  }
  return list;
}

Json tensor_params_json(const std::vector<TensorParam>& params) {
  Json list = Json::array();
  for (const TensorParam& param : params) list.push_back(json_of(param));
  return list;
}

}  // namespace

Json json_of(const FieldValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Json json_of(const ParsedCall& call, const Signature& signature) {
  Json json;
  json["op"] = call.op;
  json["params"] = params_json(call.params);
  if (!call.execution_params.empty()) json["execution_params"] = params_json(call.execution_params);
  json["inputs"] = tensors_json(signature.inputs, call.args.inputs, /*only_special=*/false);
  if (Json outputs = tensors_json(signature.outputs, call.args.outputs, /*only_special=*/true);
      !outputs.empty()) {
    json["outputs"] = std::move(outputs);
  }
  if (call.device) json["device"] = to_string(*call.device);
  if (!call.tags.empty()) json["tags"] = call.tags;
  return json;
}

std::string call_to_json(const ParsedCall& call, const Signature& signature) {
  return dump(json_of(call, signature));
}

Json json_of(CallRef call) {
  Json json = Json::object();
  for (const NamedValue& field : call.type->values(call.data, /*only_set=*/false))
    json[field.name] = json_of(field.value);
  const Where& where = call.where();
  json["device"] = to_string(where.device);
  if (where.arch != 0) json["arch"] = where.arch;
  if (where.sm_count != 0) json["sm_count"] = where.sm_count;
  if (where.smem_budget != 0) json["smem_budget"] = where.smem_budget;
  return json;
}

Json json_of(const DeviceFacts& facts) {
  Json json;
  json["arch"] = facts.arch;
  json["sm_count"] = facts.sm_count;
  json["smem_budget"] = facts.smem_budget;
  json["calibration"] = facts.calibration;
  return json;
}

Json json_of(const TensorParam& param) {
  Json json;
  json["name"] = param.name;
  Json dtypes = Json::array();
  for (DType dtype : param.dtypes) dtypes.push_back(std::string(to_string(dtype)));
  if (param.dtype_of.empty())
    json["dtypes"] = std::move(dtypes);
  else
    json["dtype_of"] = param.dtype_of;
  json["shape"] = param.shape;
  json["optional"] = param.optional;
  if (!param.only_if.empty()) json["only_if"] = param.only_if;
  json["written"] = param.written;
  json["contiguous"] = param.contiguous;
  json["device"] = param.host ? "cpu" : "call";
  return json;
}

Json json_of(const Signature& signature) {
  Json json;
  json["inputs"] = tensor_params_json(signature.inputs);
  json["params"] = decls_json(signature.params);
  json["execution_params"] = decls_json(signature.execution_params);
  json["outputs"] = tensor_params_json(signature.outputs);
  json["tolerance_steps"] = signature.tolerance_steps;
  return json;
}

Json json_of(const std::vector<Verdict>& verdicts) {
  Json list = Json::array();
  for (const Verdict& verdict : verdicts) {
    Json json;
    json["key"] = verdict.key;
    json["verdict"] = std::string(to_string(verdict.kind));
    json["reason"] = verdict.reason;
    json["origin"] = verdict.origin;
    list.push_back(std::move(json));
  }
  return list;
}

Json json_of(const Selection& selection) {
  Json json;
  json["chosen"] = selection.chosen ? Json(*selection.chosen) : Json();
  json["error"] = selection.error.ok() ? Json() : Json(kind_name(selection.error));
  if (!selection.error.ok()) json["message"] = message_of(selection.error);
  json["implementations"] = json_of(selection.verdicts);
  return json;
}

std::string kind_name(const absl::Status& status) {
  if (const ErrorKind kind = error_kind(status); kind != ErrorKind::none) {
    return std::string(to_string(kind));
  }
  std::string name;  // "INVALID_ARGUMENT" as "InvalidArgument", like the kinds
  bool in_word = false;
  for (char c : absl::StatusCodeToString(status.code())) {
    if (c != '_') name += in_word && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    in_word = c != '_';
  }
  return name;
}

}  // namespace kiln::internal
