#include "cli/tune_child.h"

#include <kiln/op.h>
#include <kiln/runtime.h>

#include "cli/call_arguments.h"
#include "cli/roofline.h"
#include "runtime/call_json.h"
#include "runtime/tune_json.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <sys/prctl.h>
#include <unistd.h>

namespace kiln::cli {
namespace {

void say(const Json& json) {
  std::printf("%s\n", internal::dump(json).c_str());
  std::fflush(stdout);
}

TuneOptions options_of(const Json& json) {
  TuneOptions options = internal::tune_options_of(json);
  options.progress = [](const TuneProgress& progress) {
    Json line;
    line["progress"] = {{"phase", to_string(progress.phase)},
                        {"implementation", progress.implementation},
                        {"candidate", progress.candidate},
                        {"done", progress.done},
                        {"total", progress.total}};
    say(line);
  };
  return options;
}

// Measured as the candidates were.
Floor floor_here(Runtime& runtime, const Device& device, const Roofline& roofline,
                 const CallArgs& args, const std::string& method) {
  const absl::StatusOr<DeviceSupport*> support = runtime.device_support(device.type);
  if (!support.ok()) return {};
  const absl::StatusOr<Stream> stream = (*support)->create_stream(device.index);
  if (!stream.ok()) return {};
  const bool cold = method.find("cold") != std::string::npos;
  Floor floor = floor_of(**support, *stream, roofline, args,
                         cold ? (*support)->cache_bytes(device.index) : 0);
  (*support)->destroy_stream(*stream).IgnoreError();
  return floor;
}

absl::StatusOr<Json> sweep_here(const Json& request) {
  Runtime& runtime = Runtime::instance();
  KILN_ASSIGN_OR_RETURN(const ParsedCall parsed,
                        parse_one_call(runtime, {request.at("call").get<std::string>()}));
  KILN_ASSIGN_OR_RETURN(const Device device, parse_device(request.at("device").get<std::string>()));
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Op> op, runtime.create_op(parsed.op, parsed.params));
  const ParsedCall call = internal::on_device(parsed, op->signature(), device);
  KILN_RETURN_IF_ERROR(
      op->tune(call.args, device, options_of(request.at("options")), call.execution_params));
  Json reports = Json::array();
  std::optional<Floor> floor;  // of the call, in which the kernels of the op itself are measured
  const Roofline roofline = op->roofline_of(call.args);
  const std::string problem = internal::problem_text(op->signature(), call.args);
  for (const TuneReport& report : op->tune_reports()) {
    reports.push_back(internal::json_of(report));
    // A record may have been measured in another call.
    if (report.op != parsed.op || report.problem != problem) continue;
    if (!floor) floor = floor_here(runtime, device, roofline, call.args, report.method);
    Json& json = reports.back();
    json["bytes"] = roofline.bytes;
    json["flops"] = roofline.flops;
    json["roofline_seconds"] = floor->seconds;
    json["roofline"] = floor->text;
  }
  return reports;
}

absl::StatusOr<Exit> child() {
  // The parent must not leave a sweep behind, however it ends.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // What ends the parent's command tidily must not look like a candidate that took its process
  // down.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  KILN_ASSIGN_OR_RETURN(const std::string text, read_input("-"));
  Json last;
  try {
    const Json request = Json::parse(text);
    // A parent that died before the signal above was asked for sends none.
    if (request.at("parent").get<std::int64_t>() != ::getppid())
      return absl::CancelledError("tune-child: its parent has ended");
    absl::StatusOr<Json> reports = sweep_here(request);
    if (reports.ok())
      last["reports"] = *std::move(reports);
    else
      last["error"] = {{"code", static_cast<int>(reports.status().code())},
                       {"message", reason_of(reports.status())}};
  } catch (const Json::exception& e) {
    return absl::InvalidArgumentError(
        absl::StrFormat("tune-child: must be started by kiln tune: got %s", e.what()));
  }
  say(last);
  return Exit::ok;
}

}  // namespace

void add_tune_child(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("tune-child", "")->group("");
  command->callback([&session] { session.command = [] { return child(); }; });
}

}  // namespace kiln::cli
