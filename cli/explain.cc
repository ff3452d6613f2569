#include <kiln/runtime.h>

#include "cli/call_arguments.h"
#include "cli/device_arguments.h"
#include "cli/help.h"
#include "cli/session.h"
#include "runtime/call_json.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace kiln::cli {
namespace {

struct ExplainArguments {
  std::vector<std::string> call;
  DeviceArguments devices;
};

struct Explained {
  std::vector<tools::PlannedKernel> kernels;
  std::string no_compiler;  // why there is none; empty when there is
};

// Without its compiler a device's artifacts have no whole key: those are looked for that a process
// would use which may not compile.
absl::StatusOr<Explained> explain_on(Op& op, const CallArgs& args, const Place& place) {
  Explained explained;
  auto kernels = tools::explain_call(op, args, place.device.type, place.facts, /*look_up=*/true);
  if (!kernels.ok() && absl::IsFailedPrecondition(kernels.status())) {
    explained.no_compiler = reason_of(kernels.status());
    kernels = tools::look_up_call(op, args, place.device.type, place.facts);
  }
  if (!kernels.ok()) return kernels.status();
  explained.kernels = *std::move(kernels);
  return explained;
}

Json kernel_json(const Place& place, const tools::PlannedKernel& kernel) {
  Json json;
  json["board"] = place.name;
  json["interface"] = kernel.interface;
  json["call"] = kernel.call;
  json.update(internal::json_of(kernel.selection));
  json["identity"] = kernel.selection.chosen ? Json(kernel.identity.hash()) : Json();
  json["identity_text"] = kernel.selection.chosen ? Json(kernel.identity.text()) : Json();
  json["config"] = Json::object();
  for (const auto& [name, value] : kernel.config.values()) json["config"][name] = value;
  json["programs"] = Json::array();
  for (const tools::PlannedProgram& program : kernel.programs) {
    Json one;
    one["source"] = program.program.source;
    one["target"] = program.target;
    one["key"] = to_hex(program.key);
    one["tier"] = program.tier ? Json(std::string(cache::to_string(*program.tier))) : Json();
    json["programs"].push_back(std::move(one));
  }
  return json;
}

void print_kernel(const tools::PlannedKernel& kernel) {
  print("  %s: %s\n", kernel.interface, kernel.call);
  for (const Verdict& verdict : kernel.selection.verdicts) {
    print("    %-24s %-12s %s\n", verdict.key, std::string(to_string(verdict.kind)),
          verdict.reason);
  }
  if (!kernel.selection.error.ok()) {
    print("    none: %s\n", indented(reason_of(kernel.selection.error), 4));
    return;
  }
  print("    identity %s %s\n", kernel.identity.hash(), kernel.identity.text());
  if (!kernel.config.empty()) print("    config   %s\n", to_string(kernel.config));
  for (const tools::PlannedProgram& program : kernel.programs) {
    print("    program  %s for %s: %s, key %s\n", program.program.source, program.target,
          program.tier ? ("in " + std::string(cache::to_string(*program.tier))) : "not built",
          to_hex(program.key));
  }
}

absl::StatusOr<Exit> explain(const Session& session, const ExplainArguments& arguments) {
  Runtime& runtime = Runtime::instance();
  KILN_ASSIGN_OR_RETURN(const ParsedCall call, parse_one_call(runtime, arguments.call));
  KILN_ASSIGN_OR_RETURN(const std::vector<Place> places,
                        places_of(runtime, arguments.devices, call.device));
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Op> op, runtime.create_op(call.op, call.params));
  bool all_served = true;
  const std::string target = runtime.default_target();
  Json json;
  json["op"] = call.op;
  json["target"] = target.empty() ? Json() : Json(target);
  json["boards"] = Json::array();
  json["plan"] = Json::array();
  for (const Place& place : places) {
    const ParsedCall here = internal::on_device(call, op->signature(), place.device);
    KILN_ASSIGN_OR_RETURN(const Explained explained, explain_on(*op, here.args, place));
    Json board;
    board["name"] = place.name;
    board["device"] = std::string(place.device.type.name());
    board["facts"] = internal::json_of(place.facts);
    if (!explained.no_compiler.empty()) board["no_compiler"] = explained.no_compiler;
    json["boards"].push_back(std::move(board));
    if (!session.json) print("%s on %s (%s)\n", call.op, place.name, to_string(place.facts));
    for (const tools::PlannedKernel& kernel : explained.kernels) {
      all_served = all_served && kernel.selection.error.ok();
      if (session.json)
        json["plan"].push_back(kernel_json(place, kernel));
      else
        print_kernel(kernel);
    }
    if (!session.json && !explained.no_compiler.empty()) {
      print("  as where nothing may compile: %s\n", indented(explained.no_compiler, 2));
    }
  }
  if (session.json) print_json(json);
  return all_served ? Exit::ok : Exit::cannot_do;
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "explain", "which implementation serves each kernel call of an op, and why");
  auto arguments = std::make_shared<ExplainArguments>();
  command->add_option("CALL", arguments->call, "an op and its JSON")->required()->expected(1, 2);
  add_device_options(*command, arguments->devices);
  examples(*command, {{"kiln explain LayerNormFwdOp "
                       "'{\"params\":{\"normalized_shape\":[4096]},\"inputs\":{\"x\":{\"dtype\":"
                       "\"float16\",\"shape\":[8192,4096]}}}' --board h200",
                       "no such board need be here"},
                      {"kiln explain CALL --arch 80,90a", "for the reference boards of two archs"},
                      {"kiln explain CALL --device cpu", "on the CPU"}});
  command->callback([&session, arguments] {
    session.command = [&session, arguments] { return explain(session, *arguments); };
  });
}

}  // namespace kiln::cli
