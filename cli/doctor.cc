#include <kiln/runtime.h>

#include "cli/session.h"
#include "jit/nvrtc_library.h"
#include "runtime/cuda_driver.h"
#include "runtime/plugin_probe.h"
#include "runtime/plugins.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

namespace kiln::cli {
namespace {

// One thing that Kiln needs or can use.
struct Check {
  std::string name;
  bool ok = false;
  std::string found;
  std::string advice;  // what to do; empty when nothing is
};

Check check_toolkit(const RuntimeOptions& options) {
  const absl::StatusOr<jit::NvrtcLibrary> nvrtc = jit::load_nvrtc(
      {.library = options.nvrtc, .cuda_home = options.cuda_home, .include_dir = ""});
  if (!nvrtc.ok()) {
    return {"nvrtc", false, message_of(nvrtc.status()),
            "install the CUDA Toolkit 12.8 or newer, or set CUDA_HOME or KILN_NVRTC; without it "
            "Kiln serves what is in its cache"};
  }
  std::string archs;
  for (int arch : nvrtc->archs) archs += (archs.empty() ? "" : ", ") + std::to_string(arch);
  return {"nvrtc", true,
          absl::StrFormat("%s, version %d.%d, headers in %s, archs %s", nvrtc->path, nvrtc->major,
                          nvrtc->minor, nvrtc->include_dir.empty() ? "none" : nvrtc->include_dir,
                          archs),
          nvrtc->include_dir.empty()
              ? "the toolkit's headers are missing: kernels that use cuda_fp16.h do not compile"
              : ""};
}

Check check_driver() {
  const absl::StatusOr<std::unique_ptr<const CudaDriver>> driver = CudaDriver::open();
  if (!driver.ok()) {
    return {"driver", false, message_of(driver.status()),
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
          {"devices " + name, false, count.ok() ? "none" : message_of(count.status()),
           "calls on " + name + " cannot run here; everything that needs no device works"});
      continue;
    }
    for (int i = 0; i < *count; ++i) {
      const absl::StatusOr<DeviceFacts> facts = (*support)->facts(i);
      checks.push_back({absl::StrFormat("device %s:%d", name, i), facts.ok(),
                        facts.ok() ? to_string(*facts) : message_of(facts.status()),
                        facts.ok() ? "" : "see what the driver says, and nvidia-smi"});
    }
  }
}

Check check_host_compiler(Runtime& runtime) {
  const absl::StatusOr<DeviceSupport*> support = runtime.device_support(DeviceType::cpu());
  if (!support.ok()) {
    return {"host compiler", false, message_of(support.status()),
            "the CPU backend is not loaded, so none is needed"};
  }
  const absl::StatusOr<CompilerId> id = (*support)->compiler().id();
  if (id.ok()) return {"host compiler", true, id->name + " " + id->build, ""};
  return {"host compiler", false, message_of(id.status()),
          "install g++ (package g++), or set KILN_CXX; without it the CPU backend serves what is "
          "in its cache"};
}

Check check_cache(Runtime& runtime) {
  const std::string& wanted = runtime.options().cache_dir;
  const std::string dir = tools::store(runtime).disk_dir();
  if (!dir.empty()) return {"cache", true, dir, ""};
  return {"cache", false, wanted.empty() ? "no folder is named" : wanted + " cannot be used",
          "set KILN_CACHE_DIR to a folder that you own and nobody else can write; without it every "
          "process builds again"};
}

void check_layers(Runtime& runtime, std::vector<Check>& checks) {
  for (const cache::LayerInfo& layer : tools::store(runtime).layers()) {
    const std::string what = layer.is_pack
                                 ? absl::StrFormat("pack of %d artifacts%s", layer.artifacts,
                                                   layer.is_signed ? ", signed" : "")
                                 : "folder";
    checks.push_back({"layer " + layer.path, layer.reason.empty(),
                      layer.reason.empty() ? what : layer.reason,
                      layer.reason.empty() ? ""
                                           : "export it anew, or take it out of "
                                             "KILN_CACHE_LAYERS; it is skipped"});
  }
}

void check_remote(Runtime& runtime, std::vector<Check>& checks) {
  cache::Store& store = tools::store(runtime);
  const std::optional<cache::RemoteInfo> remote = store.remote();
  if (!remote) return;
  if (!remote->reason.empty()) {
    checks.push_back({"remote cache", false, remote->reason, "see KILN_CACHE_REMOTE"});
    return;
  }
  const absl::Status answer = store.check_remote();
  checks.push_back(
      {"remote cache", answer.ok(),
       answer.ok() ? remote->address + " answers" : remote->address + ": " + message_of(answer),
       answer.ok() ? ""
                   : "see KILN_CACHE_REMOTE; without it this machine builds what "
                     "others have"});
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
    probed[file] = opened.ok() ? "" : message_of(opened);
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

absl::StatusOr<Exit> doctor(const Session& session) {
  RuntimeOptions options = RuntimeOptions::from_environment();
  Probed probed = probe_backends(options);
  Runtime runtime(options);
  runtime.load_backends();
  std::vector<Check> checks{check_toolkit(runtime.options()), check_driver()};
  check_devices(runtime, checks);
  checks.push_back(check_host_compiler(runtime));
  checks.push_back(check_cache(runtime));
  check_layers(runtime, checks);
  check_remote(runtime, checks);
  check_backends(runtime, std::move(probed), checks);
  Json json;
  json["checks"] = Json::array();
  for (const Check& check : checks) {
    if (!session.json) {
      std::printf("%-8s %-16s %s\n", check.ok ? "ok" : "missing", check.name.c_str(),
                  indented(check.found, 26).c_str());
      if (!check.advice.empty()) std::printf("%26s-> %s\n", "", check.advice.c_str());
      continue;
    }
    Json one;
    one["name"] = check.name;
    one["ok"] = check.ok;
    one["found"] = check.found;
    one["advice"] = check.advice;
    json["checks"].push_back(std::move(one));
  }
  if (session.json) print_json(json);
  return Exit::ok;
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "doctor", "toolkit, driver, devices, cache, backends: found or not, and what to do");
  command->callback([&session] { session.command = [&session] { return doctor(session); }; });
}

}  // namespace kiln::cli
