#include "cli/tune_child.h"

#include <kiln/op.h>
#include <kiln/runtime.h>

#include "cli/call_arguments.h"
#include "runtime/call_json.h"
#include "runtime/tensor_buffer.h"
#include "runtime/test_values.h"
#include "runtime/tune_json.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>

#include <csignal>
#include <cstdio>
#include <list>
#include <memory>
#include <optional>
#include <sys/prctl.h>

namespace kiln::cli {
namespace {

void say(const Json& json) {
  std::printf("%s\n", internal::dump(json).c_str());
  std::fflush(stdout);
}

TuneOptions options_of(const Json& json) {
  TuneOptions options;
  const std::string policy = json.at("policy").get<std::string>();
  for (const SearchPolicy known :
       {SearchPolicy::automatic, SearchPolicy::exhaustive, SearchPolicy::halving}) {
    if (policy == to_string(known)) options.policy = known;
  }
  options.sample_size = json.at("sample_size").get<std::size_t>();
  options.seed = json.at("seed").get<std::uint64_t>();
  options.budget_seconds = json.at("budget_seconds").get<double>();
  options.compile_seconds = json.at("compile_seconds").get<double>();
  options.rounds = json.at("rounds").get<int>();
  options.force = json.at("force").get<bool>();
  options.store = json.at("store").get<bool>();
  for (const Json& one : json.at("exclude")) {
    options.exclude.push_back({one.at("implementation").get<std::string>(),
                               one.at("config").get<std::string>(),
                               one.at("reason").get<std::string>()});
  }
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

// The tensors that one side of a call passes, on the stream's device and filled with test values.
absl::Status make_tensors(const std::vector<TensorParam>& params,
                          const std::vector<std::optional<ArgSpec>>& args, DeviceSupport& support,
                          const Stream& stream, std::list<internal::TensorBuffer>& memory,
                          std::vector<const Tensor*>& views) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    views.push_back(nullptr);
    if (!args[i]) continue;
    KILN_ASSIGN_OR_RETURN(
        internal::TensorBuffer buffer,
        internal::TensorBuffer::allocate(params[i].host ? nullptr : &support, stream, *args[i]));
    memory.push_back(std::move(buffer));
    memory.back().set(internal::TestValues(args[i]->spec.dtype, i + 1));
    KILN_RETURN_IF_ERROR(memory.back().upload());
    views.back() = &memory.back().tensor();
  }
  return absl::OkStatus();
}

// Makes the call on tensors of its own, and waits for it.
absl::Status call_once(Runtime& runtime, Op& op, const ParsedCall& call, const Device& device) {
  KILN_ASSIGN_OR_RETURN(DeviceSupport* const support, runtime.device_support(device.type));
  KILN_ASSIGN_OR_RETURN(const Stream stream, support->create_stream(device.index));
  const ParsedCall here = internal::on_device(call, op.signature(), device);
  absl::Status status;
  {
    std::list<internal::TensorBuffer> memory;
    std::vector<const Tensor*> inputs, outputs;
    status =
        make_tensors(op.signature().inputs, here.args.inputs, *support, stream, memory, inputs);
    if (status.ok()) {
      status = make_tensors(op.signature().outputs, here.args.outputs, *support, stream, memory,
                            outputs);
    }
    if (status.ok()) status = op.call(stream, inputs, outputs, here.execution_params);
    status.Update(support->synchronize(stream));
  }
  status.Update(support->destroy_stream(stream));
  return status;
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
  for (const TuneReport& report : op->tune_reports()) reports.push_back(internal::json_of(report));
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
    absl::StatusOr<Json> reports = sweep_here(Json::parse(text));
    if (reports.ok())
      last["reports"] = *std::move(reports);
    else
      last["error"] = {{"code", static_cast<int>(reports.status().code())},
                       {"message", message_of(reports.status())}};
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
