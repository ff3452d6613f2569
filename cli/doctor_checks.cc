#include "cli/doctor_checks.h"

#include <kiln/log.h>

#include "base/distinct_lines.h"
#include "base/file_system.h"
#include "cache/signature.h"
#include "cache/store.h"
#include "cli/help.h"
#include "cli/session.h"
#include "jit/nvrtc_library.h"
#include "jit/worker_compiler.h"
#include "runtime/tools.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <sys/statvfs.h>
#include <unistd.h>

namespace kiln::cli {

Warnings::Warnings() {
  set_log_sink([this](LogLevel level, std::string_view message) {
    if (level < LogLevel::warning) return;
    MutexLock lock(mutex_);
    lines_.emplace_back(message);
  });
}

Warnings::~Warnings() { set_log_sink({}); }

std::string Warnings::take() {
  MutexLock lock(mutex_);
  std::string text = absl::StrJoin(lines_, "; ");
  lines_.clear();
  return text;
}

namespace {

// How far two names are from each other: single letters added, left out or replaced.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

std::string unknown_variable(const std::string& name) {
  const std::vector<Variable> known = environment();
  const auto nearest =
      std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
        return distance(name, a.name) < distance(name, b.name);
      });
  const bool is_near = distance(name, nearest->name) <= 3;
  return name + (is_near ? " (did you mean " + nearest->name + "?)" : "");
}

}  // namespace

Check check_environment(const std::string& complaints) {
  const std::vector<Variable> known = environment();
  std::vector<std::string> set, unknown;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view setting = *at;
    const std::string name(setting.substr(0, setting.find('=')));
    if (!name.starts_with("KILN_")) continue;
    const bool is_known = std::any_of(known.begin(), known.end(),
                                      [&](const Variable& one) { return one.name == name; });
    if (is_known)
      set.push_back(name);
    else
      unknown.push_back(unknown_variable(name));
  }
  Check check{"environment", unknown.empty() && complaints.empty(),
              set.empty() ? "no KILN_ variable is set" : "set: " + absl::StrJoin(set, ", "), ""};
  if (!unknown.empty()) check.found += "; nobody reads " + absl::StrJoin(unknown, ", ");
  if (!complaints.empty()) check.found += "; " + complaints;
  if (!check.ok) check.advice = "correct or unset them; `kiln help environment` lists all";
  return check;
}

namespace {

Check check_nvrtc(const absl::StatusOr<jit::NvrtcLibrary>& nvrtc) {
  if (!nvrtc.ok()) {
    return {"nvrtc", false, reason_of(nvrtc.status()),
            "install the CUDA Toolkit 12.8 or newer, or set CUDA_HOME or KILN_NVRTC; without it "
            "Kiln serves what is in its cache"};
  }
  return {"nvrtc", true,
          absl::StrFormat("%s, version %d.%d, headers in %s, archs %s", nvrtc->path, nvrtc->major,
                          nvrtc->minor, nvrtc->include_dir.empty() ? "none" : nvrtc->include_dir,
                          absl::StrJoin(nvrtc->archs, ", ")),
          nvrtc->include_dir.empty()
              ? "the toolkit's headers are missing: kernels that use cuda_fp16.h do not compile"
              : ""};
}

// Compiles an empty kernel as a call would.
Check check_compilation(Runtime& runtime, const jit::NvrtcLibrary& nvrtc, Warnings& warnings) {
  const RuntimeOptions& options = runtime.options();
  const absl::StatusOr<DeviceSupport*> support = runtime.device_support(DeviceType::cuda());
  if (!support.ok()) return {"compiling", false, reason_of(support.status()), "report this"};
  const bool has_90 = std::count(nvrtc.archs.begin(), nvrtc.archs.end(), 90) > 0;
  CompileRequest request;
  request.source_name = "doctor.cu";
  request.source = "extern \"C\" __global__ void kiln_doctor() {}\n";
  request.kernels = {"kiln_doctor"};
  request.target = absl::StrFormat("sm_%d", has_90 ? 90 : nvrtc.archs.back());
  const absl::Time start = absl::Now();
  const absl::StatusOr<CompileResult> result = (*support)->compiler().compile(request);
  const std::string took = seconds_text(absl::ToDoubleSeconds(absl::Now() - start));
  const std::string said = warnings.take();
  const std::string worker = jit::find_compile_worker(options.compile_worker);
  Check check{"compiling", result.ok() && said.empty(), "", ""};
  if (!result.ok()) {
    check.found = reason_of(result.status()) + (said.empty() ? "" : "; " + said);
    check.advice =
        "see what it says; KILN_JOBS=0 compiles without workers, KILN_COMPILE_LIMIT and "
        "KILN_COMPILE_MEMORY are their limits";
  } else if (options.jobs == 0) {
    check.found = "in the process itself (KILN_JOBS=0), an empty kernel in " + took;
  } else if (runtime.stats().compiled_in_process == 0) {
    check.found = absl::StrFormat("by %s, an empty kernel in %s", worker, took);
  } else {
    check.ok = false;
    check.found = "in the process itself: " + (said.empty() ? "no worker" : said);
    check.advice =
        "put this build's kiln-compile-worker beside the library or set KILN_COMPILE_WORKER to it; "
        "without it builds run one at a time and a crash of NVRTC takes the process along";
  }
  return check;
}

}  // namespace

std::vector<Check> check_compiling(Runtime& runtime, Warnings& warnings) {
  const RuntimeOptions& options = runtime.options();
  const absl::StatusOr<jit::NvrtcLibrary> nvrtc = jit::load_nvrtc(
      {.library = options.nvrtc, .cuda_home = options.cuda_home, .include_dir = ""});
  std::vector<Check> checks{check_nvrtc(nvrtc)};
  if (nvrtc.ok()) checks.push_back(check_compilation(runtime, *nvrtc, warnings));
  return checks;
}

namespace {

std::size_t count_files(const std::string& folder) {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code file_error;
    if (it->is_regular_file(file_error)) ++count;
  }
  return count;
}

// Writes a file as an artifact is written, and removes it.
absl::Status try_to_write(const std::string& dir) {
  FileSystem& files = real_file_system();
  const std::string path = dir + "/tmp." + unique_suffix();
  KILN_ASSIGN_OR_RETURN(const Fd fd, files.create(path));
  absl::Status status = write_all(files, fd, std::string(1 << 16, 'x'));
  if (status.ok()) status = files.sync(fd);
  files.unlink(path).IgnoreError();
  return status;
}

Check check_folder(Runtime& runtime, const std::string& complaints) {
  const std::string& wanted = runtime.options().cache_dir;
  const std::string dir = tools::store(runtime).disk_dir();
  if (dir.empty()) {
    std::string found =
        wanted.empty() ? "no folder is named, and there is no home" : wanted + " cannot be used";
    if (!complaints.empty()) found += ": " + complaints;
    return {"cache", false, found,
            "set KILN_CACHE_DIR to a folder that you own and nobody else can write; without it "
            "every process builds again"};
  }
  if (const absl::Status written = try_to_write(dir); !written.ok()) {
    return {"cache", false, absl::StrFormat("%s cannot be written: %s", dir, reason_of(written)),
            "free space or quota, or make the folder writable; what is in it is still used"};
  }
  constexpr std::uint64_t kLittle = 256ull << 20;
  struct statvfs space = {};
  if (::statvfs(dir.c_str(), &space) == 0 && space.f_bavail * space.f_frsize < kLittle) {
    return {"cache", false,
            absl::StrFormat("%s has %d MiB left", dir, (space.f_bavail * space.f_frsize) >> 20),
            "free space, or lower KILN_CACHE_MAX_BYTES and run `kiln cache gc`"};
  }
  return {"cache", true, dir, ""};
}

}  // namespace

std::vector<Check> check_cache(Runtime& runtime, const std::string& complaints) {
  std::vector<Check> checks{check_folder(runtime, complaints)};
  const std::string dir = tools::store(runtime).disk_dir();
  if (const std::size_t damaged = dir.empty() ? 0 : count_files(dir + "/quarantine"); damaged > 0) {
    checks.push_back(
        {"cache damage", false,
         absl::StrFormat("%d files were set aside as damaged in %s/quarantine", damaged, dir),
         "they are built again; if it happens again, check the disk. `kiln cache "
         "verify` reads all others, `kiln cache clear` removes these too"});
  }
  for (const cache::LayerInfo& layer : tools::store(runtime).layers()) {
    const bool used = layer.reason.empty();
    std::string found = used ? (layer.is_signed ? "used, signed by a trusted key" : "used")
                             : "skipped: " + layer.reason;
    if (used && layer.artifacts >= 0) found += absl::StrFormat(", %d artifacts", layer.artifacts);
    checks.push_back({"layer " + layer.path, used, found,
                      used ? ""
                           : "correct KILN_CACHE_LAYERS, or make the pack anew with this Kiln: "
                             "`kiln cache export`"});
  }
  return checks;
}

std::vector<Check> check_remote(Runtime& runtime) {
  cache::Store& store = tools::store(runtime);
  const std::optional<cache::RemoteInfo> remote = store.remote();
  if (!remote) return {};
  if (!remote->reason.empty())
    return {{"remote cache", false, remote->reason, "see KILN_CACHE_REMOTE"}};
  const absl::Status answer = store.check_remote();
  if (answer.ok()) return {{"remote cache", true, remote->address + " answers", ""}};
  return {{"remote cache", false, remote->address + ": " + reason_of(answer),
           "see KILN_CACHE_REMOTE; without it this machine builds what others have"}};
}

std::vector<Check> check_recording(const RuntimeOptions& options) {
  const std::string& path = options.record_calls_file;
  if (path.empty()) return {};
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(path, ignored);
  const auto opened = DistinctLines::open(
      path, 1,
      {[](std::string_view line) { return std::string(line); }, [](auto) { return true; }});
  if (!was_there) std::filesystem::remove(path, ignored);
  return {{"recorded calls", opened.ok(), opened.ok() ? path : reason_of(opened.status()),
           opened.ok() ? "" : "set KILN_RECORD_CALLS to a file that can be written"}};
}

}  // namespace kiln::cli
