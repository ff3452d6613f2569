#include <kiln/runtime.h>

#include "cli/call_arguments.h"
#include "cli/help.h"
#include "cli/session.h"
#include "runtime/call_json.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace kiln::cli {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::vector<std::string> names_of(const std::vector<DType>& dtypes) {
  std::vector<std::string> names;
  for (DType dtype : dtypes) names.emplace_back(to_string(dtype));
  return names;
}

std::vector<std::string> names_of(const std::vector<DeviceType>& devices) {
  std::vector<std::string> names;
  for (DeviceType device : devices) names.emplace_back(device.name());
  return names;
}

std::vector<std::string> names_of(const std::vector<int>& archs) {
  std::vector<std::string> names;
  for (int arch : archs) names.push_back(std::to_string(arch));
  return names;
}

// The name by which the op asks for the interface an implementation fulfils.
std::string interface_of(const OpType& type, const KernelRow& row) {
  for (const InterfaceType& interface : type.interfaces) {
    if (interface.type_name == row.type.interface_type) return interface.name;
  }
  return "";
}

Json op_json(Runtime& runtime, const OpType& type) {
  Json json;
  json["op"] = type.signature.op;
  json["signature"] = internal::json_of(type.signature);
  json["interfaces"] = Json::array();
  for (const InterfaceType& interface : type.interfaces) {
    Json one;
    one["name"] = interface.name;
    one["type"] = interface.type_name;
    one["call_spec"] = std::string(interface.request->name);
    json["interfaces"].push_back(std::move(one));
  }
  json["implementations"] = Json::array();
  for (const KernelRow& row : runtime.kernel_rows(type.signature.op)) {
    Json one;
    one["key"] = row.key;
    one["interface"] = interface_of(type, row);
    one["class"] = row.type.class_name;
    one["devices"] = names_of(row.type.devices);
    one["archs"] = row.type.supported_archs;
    one["general"] = row.type.general;
    one["preferred_over"] = row.type.preferred_over;
    one["origin"] = row.origin;
    json["implementations"].push_back(std::move(one));
  }
  json["reference"] = runtime.reference(type.signature.op) != nullptr;
  return json;
}

void print_tensor(const TensorParam& param, bool output) {
  const std::string dtypes =
      param.dtype_of.empty() ? joined(names_of(param.dtypes)) : "as " + param.dtype_of;
  std::string notes;
  if (param.optional) notes += ", optional";
  if (param.written) notes += ", written in place";
  if (!param.contiguous) notes += ", any strides";
  if (param.host) notes += ", on the host";
  print("  %-7s %-12s [%s]  %s%s\n", output ? "output" : "input", param.name, param.shape, dtypes,
        notes);
}

void print_params(const std::vector<ParamDecl>& decls, const char* what) {
  for (const ParamDecl& decl : decls) {
    print("  %-7s %-12s %s%s\n", what, decl.name, std::string(to_string(decl.type)),
          decl.default_value ? (", default " + to_string(*decl.default_value)) : "");
  }
}

void print_op(Runtime& runtime, const OpType& type) {
  print("%s\n", type.signature.op);
  for (const TensorParam& param : type.signature.inputs) print_tensor(param, false);
  for (const TensorParam& param : type.signature.outputs) print_tensor(param, true);
  print_params(type.signature.params, "param");
  print_params(type.signature.execution_params, "exec");
  for (const InterfaceType& interface : type.interfaces) {
    print("  interface %s (%s, takes a %s)\n", interface.name, interface.type_name,
          std::string(interface.request->name));
    for (const KernelRow& row : runtime.kernel_rows(type.signature.op)) {
      if (interface_of(type, row) != interface.name) continue;
      const std::string archs = row.type.supported_archs.empty()
                                    ? "all archs"
                                    : "archs " + joined(names_of(row.type.supported_archs));
      print("    %-24s %s, %s%s%s (%s)\n", row.key, joined(names_of(row.type.devices)), archs,
            row.type.general ? ", general" : "",
            row.type.preferred_over.empty()
                ? ""
                : (", preferred over " + joined(row.type.preferred_over)),
            row.origin);
    }
  }
}

absl::StatusOr<Exit> list_ops(const Session& session, const std::string& only, bool names_only) {
  Runtime& runtime = Runtime::instance();
  runtime.load_backends();
  std::vector<std::string> names = runtime.op_names();
  if (!only.empty()) {
    const absl::StatusOr<const OpType*> type = runtime.op_type(only);
    if (!type.ok()) return absl::InvalidArgumentError(reason_of(type.status()));
    names = {only};
  }
  if (names_only && !session.json) {
    for (const std::string& name : names) print("%s\n", name);
    return Exit::ok;
  }
  Json json;
  json["ops"] = Json::array();
  for (const std::string& name : names) {
    KILN_ASSIGN_OR_RETURN(const OpType* type, runtime.op_type(name));
    if (session.json)
      json["ops"].push_back(op_json(runtime, *type));
    else
      print_op(runtime, *type);
  }
  if (session.json) print_json(json);
  return Exit::ok;
}

}  // namespace

void add_ops(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("ops", "ops, signatures, interfaces, implementations, archs, dtypes");
  auto only = std::make_shared<std::string>();
  command->add_option("OP", *only, "only this op");
  auto names_only = std::make_shared<bool>(false);
  command->add_flag("--names", *names_only, "only the names, one a line");
  examples(*command, {{"kiln ops", "all ops"},
                      {"kiln ops LayerNormFwdOp --json", "one of them, for scripts"},
                      {"kiln ops --names", "their names, one a line"}});
  command->callback([&session, only, names_only] {
    session.command = [&session, only, names_only] {
      return list_ops(session, *only, *names_only);
    };
  });
}

}  // namespace kiln::cli
