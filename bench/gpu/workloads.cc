#include "bench/gpu/workloads.h"

#include "runtime/families.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <variant>

namespace kiln::bench {
namespace {

using internal::Json;

std::string by_x(const Dims& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

// A shape stands once for inputs in a row that have it, but both of two matrices that only happen
// to be alike.
std::string shapes_of(const CallArgs& args, const Signature& signature) {
  std::string text, last, last_symbols;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const auto& input = args.inputs[i];
    if (!input || input->spec.shape.size() < 2) continue;
    const std::string shape = by_x(input->spec.shape), symbols = signature.inputs[i].shape;
    const bool differs = input->spec.shape.size() == 2 && symbols != last_symbols;
    if (shape != last || differs) text += (text.empty() ? "" : ",") + shape;
    last = shape;
    last_symbols = symbols;
  }
  return text;
}

std::string name_of(const internal::ParsedCall& call, const Signature& signature) {
  std::string name = call.op + " " + shapes_of(call.args, signature);
  for (const auto& input : call.args.inputs) {
    if (!input) continue;
    name += " " + std::string(to_string(input->spec.dtype));
    break;
  }
  const Json params = internal::json_of(call, signature).at("params");
  for (const auto& [key, value] : params.items()) {
    if (value.is_boolean() && value.get<bool>()) name += " " + key;
    if (value.is_number_integer())
      name += absl::StrFormat(" %s=%d", key, value.get<std::int64_t>());
    if (value.is_number_float() && value != 0.0 && std::trunc(value.get<double>()) == value)
      name += absl::StrFormat(" %s=%g", key, value.get<double>());
  }
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    if (signature.inputs[i].optional && call.args.inputs[i])
      name += " +" + signature.inputs[i].name;
  }
  return name;
}

std::map<std::string, std::string_view> problems_by_family() {
  static const SourceTable* const table = [] {
    auto* sources = new SourceTable;  // the texts live in the library
    internal::add_family_sources(*sources);
    return sources;
  }();
  constexpr std::string_view kPrefix = "kernel_sources/", kLeaf = "/problems.jsonl";
  std::map<std::string, std::string_view> problems;
  for (const auto& [name, text] : *table) {
    if (std::string_view(name).ends_with(kLeaf))
      problems[name.substr(kPrefix.size(), name.size() - kPrefix.size() - kLeaf.size())] = text;
  }
  return problems;
}

absl::Status add_family(Runtime& runtime, const std::string& family, std::string_view text,
                        std::vector<Workload>& workloads) {
  KILN_ASSIGN_OR_RETURN(
      std::vector<internal::CallLine> lines,
      internal::parse_calls(text, family + "/problems.jsonl",
                            [&](std::string_view op) -> absl::StatusOr<const Signature*> {
                              KILN_ASSIGN_OR_RETURN(const OpType* const type, runtime.op_type(op));
                              return &type->signature;
                            }));
  std::map<std::string, int> seen;
  for (internal::CallLine& line : lines) {
    const auto& tags = line.call.tags;
    if (std::find(tags.begin(), tags.end(), "perf") == tags.end()) continue;
    KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Op> op,
                          runtime.create_op(line.call.op, line.call.params, {.runtime = &runtime}));
    Workload one;
    one.name = name_of(line.call, op->signature());
    if (const int times = ++seen[one.name]; times > 1) one.name += absl::StrFormat(" #%d", times);
    one.family = family;
    one.line = line.line;
    one.roofline = op->roofline_of(line.call.args);
    one.call = std::move(line.call);
    workloads.push_back(std::move(one));
  }
  return absl::OkStatus();
}

Json json_of(const std::vector<TensorParam>& params,
             const std::vector<std::optional<ArgSpec>>& args) {
  Json list = Json::array();
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i]) {
      list.push_back(nullptr);
      continue;
    }
    Json one;
    one["name"] = params[i].name;
    one["dtype"] = std::string(to_string(args[i]->spec.dtype));
    one["shape"] =
        std::vector<std::int64_t>(args[i]->spec.shape.begin(), args[i]->spec.shape.end());
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

absl::StatusOr<std::vector<Workload>> perf_workloads(Runtime& runtime, const std::string& family) {
  const auto problems = problems_by_family();
  std::string names;
  std::vector<Workload> workloads;
  for (const auto& [name, text] : problems) {
    names += (names.empty() ? "" : ", ") + name;
    if (family.empty() || name == family)
      KILN_RETURN_IF_ERROR(add_family(runtime, name, text, workloads));
  }
  if (!family.empty() && problems.find(family) == problems.end())
    return absl::NotFoundError(
        absl::StrFormat("family: must be one of %s: got \"%s\"", names, family));
  return workloads;
}

absl::StatusOr<Json> json_of(Runtime& runtime, const Workload& workload) {
  KILN_ASSIGN_OR_RETURN(const OpType* const type, runtime.op_type(workload.call.op));
  Json json;
  json["name"] = workload.name;
  json["family"] = workload.family;
  json["line"] = workload.line;
  json["op"] = workload.call.op;
  json["params"] = internal::json_of(workload.call, type->signature).at("params");
  json["inputs"] = json_of(type->signature.inputs, workload.call.args.inputs);
  json["outputs"] = json_of(type->signature.outputs, workload.call.args.outputs);
  json["bytes"] = workload.roofline.bytes;
  json["flops"] = workload.roofline.flops;
  return json;
}

}  // namespace kiln::bench
