#include <kiln/runtime.h>
#include <kiln/target.h>

#include "cli/call_arguments.h"
#include "cli/help.h"
#include "cli/run_call.h"
#include "cli/session.h"
#include "runtime/call_json.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace kiln::cli {
namespace {

struct RunArguments {
  std::vector<std::string> call;
  std::string device;
  bool no_check = false;
  std::uint64_t seed = 1;
};

bool is_right(const RunReport& report) {
  return !report.checked || (report.failure.empty() && report.worst.max_steps <= report.tolerance);
}

// The first of `parts`, or null. Most calls make one kernel call of one program; all are under
// "kernels".
Json first(const std::vector<std::string>& parts) {
  return parts.empty() ? Json() : Json(parts.front());
}

Json report_json(const ParsedCall& call, const Device& device, const RunReport& report) {
  const bool in_tree = report.target == kBuiltin && !report.kernels.empty();
  Json json;
  json["op"] = call.op;
  json["device"] = to_string(device);
  json["target"] = report.target;
  json["chosen"] = in_tree ? report.kernels.front().chosen : report.target;
  json["identity"] = in_tree ? Json(report.kernels.front().identity) : Json();
  json["key"] = in_tree ? first(report.kernels.front().keys) : Json();
  json["tier"] = in_tree ? first(report.kernels.front().tiers) : Json();
  json["seconds"]["open"] = report.open_seconds;
  json["seconds"]["fill"] = report.fill_seconds;
  json["seconds"]["build"] = report.build_seconds;
  json["seconds"]["load"] = report.load_seconds;
  json["seconds"]["run"] = report.run_seconds;
  json["seconds"]["host"] = report.host_seconds;
  json["bytes"] = report.roofline.bytes;
  json["flops"] = report.roofline.flops;
  json["roofline_seconds"] = report.floor.seconds;
  json["roofline"] = report.floor.text;
  json["checked"] = report.checked;
  json["max_error"] = report.checked ? Json(report.worst.max_steps) : Json();
  json["tolerance"] = report.checked ? Json(report.tolerance) : Json();
  json["max_error_unit"] = "steps";
  if (report.checked) {
    json["worst"]["tensor"] = report.worst_tensor;
    json["worst"]["index"] = report.worst.where;
    json["worst"]["got"] = report.worst.got;
    json["worst"]["want"] = report.worst.want;
    json["worst"]["error"] = report.worst.max_absolute;
  }
  json["ok"] = is_right(report);
  if (!report.failure.empty()) json["failure"] = report.failure;
  json["kernels"] = Json::array();
  for (const RunReport::KernelRun& kernel : report.kernels) {
    Json one;
    one["interface"] = kernel.interface;
    one["chosen"] = kernel.chosen;
    one["identity"] = kernel.identity;
    one["identity_text"] = kernel.identity_text;
    one["keys"] = kernel.keys;
    one["tiers"] = kernel.tiers;
    json["kernels"].push_back(std::move(one));
  }
  return json;
}

void print_report(const ParsedCall& call, const Device& device, const RunReport& report) {
  print("%s on %s, served by %s\n", call.op, to_string(device), report.target);
  bool all_found = true;
  for (const RunReport::KernelRun& kernel : report.kernels) {
    if (report.target != kBuiltin) break;
    print("  %-10s %s\n", kernel.interface, kernel.chosen);
    print("  identity   %s %s\n", kernel.identity, kernel.identity_text);
    for (std::size_t i = 0; i < kernel.keys.size(); ++i) {
      const bool built = kernel.tiers[i] == "built";
      all_found = all_found && !built;
      print("  artifact   %s %s\n",
            built ? "built now, key" : ("from " + kernel.tiers[i] + ", key"), kernel.keys[i]);
    }
  }
  if (report.target == kBuiltin && all_found) print("  nothing was built\n");
  print("  host       %s: tensors %s, %s %s, load %s; opening the device %s\n",
        seconds_text(report.host_seconds), seconds_text(report.fill_seconds),
        all_found ? "find" : "build", seconds_text(report.build_seconds),
        seconds_text(report.load_seconds), seconds_text(report.open_seconds));
  print("  device     %s", seconds_text(report.run_seconds));
  if (report.run_seconds > 0) {
    print(" (%.1f GB/s", report.roofline.bytes / report.run_seconds * 1e-9);
    if (report.floor.seconds > 0) {
      print(", %.0f %% of the roofline: %s", 100 * report.floor.seconds / report.run_seconds,
            report.floor.text);
    }
    print(")");
  }
  print("\n");
  if (!report.checked) {
    print("  not checked\n");
    return;
  }
  print("  error      %.3g steps of at most %.3g, %.3g in %s[%zu]: got %.9g, want %.9g\n",
        report.worst.max_steps, report.tolerance, report.worst.max_absolute, report.worst_tensor,
        report.worst.where, report.worst.got, report.worst.want);
  if (!report.failure.empty()) print("  failure    %s\n", report.failure);
  print("  %s\n", is_right(report) ? "ok: right against the reference in double" : "WRONG");
}

absl::StatusOr<Exit> run(const Session& session, const RunArguments& arguments) {
  Runtime& runtime = Runtime::instance();
  KILN_ASSIGN_OR_RETURN(const ParsedCall call, parse_one_call(runtime, arguments.call));
  Device device = call.device.value_or(Device{});
  if (!arguments.device.empty()) {
    KILN_ASSIGN_OR_RETURN(device, parse_device(arguments.device));
  }
  RunOptions options;
  options.check = !arguments.no_check;
  options.seed = arguments.seed;
  KILN_ASSIGN_OR_RETURN(const RunReport report, run_call(runtime, call, device, options));
  if (session.json)
    print_json(report_json(call, device, report));
  else
    print_report(call, device, report);
  return is_right(report) ? Exit::ok : Exit::cannot_do;
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "run", "run a call on random data, check it, and tell where the time went");
  auto arguments = std::make_shared<RunArguments>();
  command->add_option("CALL", arguments->call, "an op and its JSON")->required()->expected(1, 2);
  command->add_option("--device", arguments->device, "cuda:0 (the default) or cpu")
      ->type_name("DEVICE");
  command->add_flag("--no-check", arguments->no_check, "do not compare with the reference");
  command->add_option("--seed", arguments->seed, "of the random data")->type_name("N");
  examples(*command, {{"kiln run LayerNormFwdOp "
                       "'{\"params\":{\"normalized_shape\":[4096]},\"inputs\":{\"x\":{\"dtype\":"
                       "\"float16\",\"shape\":[8192,4096]}}}'",
                       "on cuda:0"},
                      {"kiln run CALL --device cpu --no-check --json",
                       "on the CPU, only timed, for scripts"}});
  command->callback([&session, arguments] {
    session.command = [&session, arguments] { return run(session, *arguments); };
  });
}

}  // namespace kiln::cli
