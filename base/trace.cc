#include "base/trace.h"

#include <kiln/status.h>

#include "base/file_system.h"
#include "base/log.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace kiln {
namespace {

nvtxDomainHandle_t nvtx_domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("kiln");
  return domain;
}

void push_nvtx_range(const std::string& text) {
  nvtxEventAttributes_t range = {};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = text.c_str();
  nvtxDomainRangePushEx(nvtx_domain(), &range);
}

}  // namespace

double Trace::now_us() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

std::unique_ptr<Trace> Trace::open(const std::string& path) {
  if (path.empty()) return nullptr;
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const int error = errno;
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) {
    log(LogLevel::warning,
        "no trace is written: " + message_of(errno_status(error, "open " + path)));
    return nullptr;
  }
  // Two processes that begin the file at the same time may both open the array; readers pass over
  // it.
  if (info.st_size == 0) (void)!::write(file.get(), "[\n", 2);
  return std::unique_ptr<Trace>(new Trace(std::move(file)));
}

void Trace::write(std::string_view name, std::string_view detail, double begin_us, double end_us) {
  const nlohmann::json event = {{"ph", "X"},
                                {"cat", "kiln"},
                                {"name", std::string(name)},
                                {"pid", ::getpid()},
                                {"tid", ::gettid()},
                                {"ts", begin_us},
                                {"dur", end_us - begin_us},
                                {"args", {{"what", std::string(detail)}}}};
  const std::string line =
      event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ",\n";
  (void)!::write(file_.get(), line.data(), line.size());
}

TraceSpan::TraceSpan(Trace* trace, std::string_view name, std::string_view detail)
    : trace_(trace),
      name_(name),
      detail_(detail),
      begin_us_(trace == nullptr ? 0 : Trace::now_us()) {
  push_nvtx_range(std::string(name) + ": " + detail_);
}

TraceSpan::~TraceSpan() {
  nvtxDomainRangePop(nvtx_domain());
  if (trace_ != nullptr) trace_->write(name_, detail_, begin_us_, Trace::now_us());
}

}  // namespace kiln
