#include "runtime/call_recorder.h"

#include <kiln/status.h>

#include "base/log.h"
#include "runtime/json_text.h"
#include "runtime/op_core.h"
#include "runtime/runtime_impl.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace kiln::internal {
namespace {

// A line without its execution parameters. Lines that are no calls stand for themselves.
std::string identity_of(std::string_view line) {
  constexpr char kField[] = "execution_params";
  if (line.find(kField) == std::string_view::npos || !check_json_text(line).ok())
    return std::string(line);
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::string(line);
  json.erase(kField);
  return dump(json);
}

bool is_object(std::string_view line) {
  return check_json_text(line).ok() &&
         Json::parse(line, nullptr, /*allow_exceptions=*/false).is_object();
}

}  // namespace

std::unique_ptr<CallRecorder> CallRecorder::open(const std::string& path, std::size_t max_calls) {
  if (path.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<DistinctLines>> lines =
      DistinctLines::open(path, max_calls, {identity_of, is_object});
  if (lines.ok()) return std::unique_ptr<CallRecorder>(new CallRecorder(*std::move(lines)));
  log(LogLevel::warning, "no calls are recorded: " + message_of(lines.status()));
  return nullptr;
}

void CallRecorder::record(ParsedCall call, const Signature& signature) {
  call.device->index = 0;
  const absl::StatusOr<DistinctLines::Added> added = lines_->add(call_to_json(call, signature));
  if (added.ok() && *added == DistinctLines::Added::yes) ++recorded_;
  if (added.ok() && *added != DistinctLines::Added::file_is_full) return;
  if (has_warned_.exchange(true)) return;
  log(LogLevel::warning,
      added.ok() ? absl::StrFormat("the file of recorded calls is full: this call of %s, and new "
                                   "ones that follow, are left out",
                                   call.op)
                 : absl::StrFormat("a call of %s was not recorded, and others may not be: %s",
                                   call.op, message_of(added.status())));
}

}  // namespace kiln::internal

namespace kiln::inline v1 {

void OpCore::record_for_warming(const Stream& stream, const CallArgs& args,
                                const ParamValues& execution,
                                const std::vector<std::uint64_t>& key) {
  internal::CallRecorder* recorder = runtime_.impl().recorder.get();
  // A composite's own calls need nothing: its sub-ops' are recorded.
  if (recorder == nullptr || is_composite()) return;
  // Calls with execution parameters come here each time; most have been seen.
  if (!key.empty()) {
    constexpr std::size_t kMaxSeen = 4096;
    const Hash128 hash =
        hash128({reinterpret_cast<const char*>(key.data()), key.size() * sizeof(std::uint64_t)});
    MutexLock lock(mutex_);
    if (recorded_.size() >= kMaxSeen) recorded_.clear();
    if (!recorded_.insert(hash).second) return;
  }
  recorder->record({type_.signature.op, params_, execution, args, stream.device, {}},
                   type_.signature);
}

}  // namespace kiln::inline v1
