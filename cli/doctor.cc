#include <kiln/runtime.h>

#include "cli/doctor_checks.h"
#include "cli/help.h"
#include "cli/session.h"
#include "jit/nvrtc_library.h"
#include "runtime/cuda_driver.h"
#include "runtime/plugin_probe.h"
#include "runtime/plugins.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

namespace kiln::cli {
namespace {

Check check_driver() {
  const absl::StatusOr<std::unique_ptr<const CudaDriver>> driver = CudaDriver::open();
  if (!driver.ok()) {
    return {"driver", false, reason_of(driver.status()),
            "install NVIDIA's driver to run on its devices; compiling and warming need none"};
  }
  const int version = (*driver)->version();
  return {
      "driver", true,
      absl::StrFormat("%s, CUDA %d.%d", (*driver)->library(), version / 1000, version % 1000 / 10),
      ""};
}

void check_devices(Runtime& runtime, std::vector<Check>& checks) {
  for (DeviceType type : runtime.device_types()) {
    const std::string name(type.name());
    const absl::StatusOr<DeviceSupport*> support = runtime.device_support(type);
    if (!support.ok()) continue;
    const absl::StatusOr<int> count = (*support)->device_count();
    if (!count.ok() || *count == 0) {
      checks.push_back(
          {"devices " + name, false,
           count.ok()
               ? "none"
               : (name == "cuda" ? "none that can be used, see driver" : reason_of(count.status())),
           "calls on " + name + " cannot run here; everything that needs no device works"});
      continue;
    }
    for (int i = 0; i < *count; ++i) {
      const absl::StatusOr<DeviceFacts> facts = (*support)->facts(i);
      checks.push_back({absl::StrFormat("device %s:%d", name, i), facts.ok(),
                        facts.ok() ? to_string(*facts) : reason_of(facts.status()),
                        facts.ok() ? "" : "see what the driver says, and nvidia-smi"});
    }
  }
}

Check check_host_compiler(Runtime& runtime) {
  const absl::StatusOr<DeviceSupport*> support = runtime.device_support(DeviceType::cpu());
  if (!support.ok()) {
    return {"host compiler", false, reason_of(support.status()),
            "the CPU backend is not loaded, so none is needed"};
  }
  const absl::StatusOr<CompilerId> id = (*support)->compiler().id();
  if (id.ok()) return {"host compiler", true, id->name + " " + id->build, ""};
  return {"host compiler", false, reason_of(id.status()),
          "install g++ (package g++), or set KILN_CXX; without it the CPU backend serves what is "
          "in its cache"};
}

// Plugins by file: empty for one that opens, else why not.
using Probed = std::map<std::string, std::string>;

// Opens every plugin in a process of its own. Those that do not open are left out of `options`, so
// that one which would take this process along is not opened here.
Probed probe_backends(RuntimeOptions& options) {
  Probed probed;
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  for (const std::string& file : internal::find_plugins(options)) {
    if (internal::is_disabled(options, file)) continue;
    const absl::Status opened =
        error ? absl::FailedPreconditionError("cannot start a probe: " + error.message())
              : internal::probe_plugin({self, "probe-plugin"}, file);
    probed[file] = opened.ok() ? "" : reason_of(opened);
  }
  for (const auto& [file, reason] : probed) {
    if (!reason.empty()) options.disabled_backends.push_back(file);
  }
  return probed;
}

void check_backends(Runtime& runtime, Probed probed, std::vector<Check>& checks) {
  std::string targets;
  for (const std::string& target : runtime.registered_targets())
    targets += (targets.empty() ? "" : ", ") + target;
  std::string types;
  for (DeviceType type : runtime.device_types())
    types += (types.empty() ? "" : ", ") + std::string(type.name());
  checks.push_back(
      {"backends", true,
       absl::StrFormat("device types %s; targets %s", types, targets.empty() ? "none" : targets),
       ""});
  // One that opens alone can still clash with what another registered.
  for (const LoadFailure& failure : runtime.load_failures()) probed[failure.file] = failure.reason;
  for (const auto& [file, reason] : probed) {
    if (reason.empty()) {
      checks.push_back({"backend " + file, true, "opens", ""});
      continue;
    }
    checks.push_back({"backend " + file, false, reason,
                      "rebuild it against this Kiln, or leave it out with KILN_DISABLE_BACKENDS"});
  }
}

// A device that is newer than the toolkit: the driver runs it, and nothing can be compiled for it.
void check_archs(Runtime& runtime, std::vector<Check>& checks) {
  const RuntimeOptions& options = runtime.options();
  const absl::StatusOr<jit::NvrtcLibrary> nvrtc = jit::load_nvrtc(
      {.library = options.nvrtc, .cuda_home = options.cuda_home, .include_dir = ""});
  const absl::StatusOr<DeviceSupport*> support = runtime.device_support(DeviceType::cuda());
  const absl::StatusOr<int> count =
      support.ok() ? (*support)->device_count() : absl::StatusOr<int>(support.status());
  for (int i = 0; nvrtc.ok() && count.ok() && i < *count; ++i) {
    const absl::StatusOr<DeviceFacts> facts = (*support)->facts(i);
    if (!facts.ok() || std::count(nvrtc->archs.begin(), nvrtc->archs.end(), facts->arch) > 0)
      continue;
    checks.push_back({absl::StrFormat("arch of cuda:%d", i), false,
                      absl::StrFormat("NVRTC %d.%d compiles nothing for arch %d", nvrtc->major,
                                      nvrtc->minor, facts->arch),
                      "install a CUDA Toolkit that knows it (`nvcc --list-gpu-arch` there), or "
                      "serve from a pack"});
  }
}

void print_check(const Check& check) {
  print("%-8s %-16s %s\n", check.ok ? "ok" : "missing", check.name, indented(check.found, 26));
  if (!check.advice.empty()) print("%26s-> %s\n", "", check.advice);
}

absl::StatusOr<Exit> doctor(const Session& session) {
  Warnings warnings;
  RuntimeOptions options = RuntimeOptions::from_environment();
  std::vector<Check> checks{check_environment(warnings.take())};
  for (Check& check : check_recording(options)) checks.push_back(std::move(check));
  options.record_calls_file.clear();
  Probed probed = probe_backends(options);
  Runtime runtime(options);
  const std::string complaints = warnings.take();
  runtime.load_backends();
  for (Check& check : check_compiling(runtime, warnings)) checks.push_back(std::move(check));
  checks.push_back(check_driver());
  check_devices(runtime, checks);
  check_archs(runtime, checks);
  checks.push_back(check_host_compiler(runtime));
  for (Check& check : check_cache(runtime, complaints)) checks.push_back(std::move(check));
  for (Check& check : check_remote(runtime)) checks.push_back(std::move(check));
  check_backends(runtime, std::move(probed), checks);
  Json json;
  json["checks"] = Json::array();
  std::size_t bad = 0;
  for (const Check& check : checks) {
    bad += check.ok ? 0 : 1;
    if (!session.json) print_check(check);
    Json one;
    one["name"] = check.name;
    one["ok"] = check.ok;
    one["found"] = check.found;
    one["advice"] = check.advice;
    json["checks"].push_back(std::move(one));
  }
  if (session.json)
    print_json(json);
  else if (bad == 0)
    print("all is well\n");
  else
    print("%zu of %zu are not as they could be: see the arrows\n", bad, checks.size());
  return Exit::ok;
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "doctor", "toolkit, driver, devices, cache, backends: found or not, and what to do");
  examples(*command, {{"kiln doctor", "what is here, what is not, and what to do"}});
  command->callback([&session] { session.command = [&session] { return doctor(session); }; });
}

}  // namespace kiln::cli
