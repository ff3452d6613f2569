#include "bench/gpu/cupti.h"

#include "base/mutex.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#if __has_include(<cupti.h>)
#include <cupti.h>
#include <dlfcn.h>
#define KILN_HAS_CUPTI 1
#endif

namespace kiln::bench {

std::uint64_t union_length(std::vector<std::pair<std::uint64_t, std::uint64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::uint64_t length = 0, covered = 0;
  for (const auto& [start, end] : intervals) {
    const std::uint64_t from = std::max(start, covered);
    if (end > from) length += end - from;
    covered = std::max(covered, end);
  }
  return length;
}

#ifndef KILN_HAS_CUPTI

absl::StatusOr<std::unique_ptr<Cupti>> Cupti::open(const std::string&) {
  return absl::FailedPreconditionError(
      "cupti: must have been built with the toolkit's cupti.h: it was not there");
}

#else

namespace {

// A record that is kept: a kernel, or a copy or fill (no name).
struct Interval {
  std::uint64_t start, end;
  std::uint32_t correlation;
  std::string kernel;
};

// What the buffer functions fill: CUPTI calls them from a thread of its own.
struct Recorded {
  Mutex mutex;
  std::vector<Interval> intervals ABSL_GUARDED_BY(mutex);
  std::unordered_map<std::uint32_t, std::uint64_t> calls ABSL_GUARDED_BY(mutex);  // by correlation
  std::uint64_t dropped ABSL_GUARDED_BY(mutex) = 0;
  std::atomic<std::size_t> buffer_bytes{std::size_t{4} << 20};
};

struct Functions {
  decltype(&cuptiGetVersion) get_version;
  decltype(&cuptiGetResultString) get_result_string;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) get_next_record;
  decltype(&cuptiActivityGetNumDroppedRecords) get_dropped;
  decltype(&cuptiActivityPushExternalCorrelationId) push_id;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_id;
};

// CUPTI's buffer functions take no argument of ours.
Recorded* recorded = nullptr;
Functions cupti{};

constexpr std::size_t kBufferAlignment = 8;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *size = recorded->buffer_bytes.load();
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, *size));
  if (*buffer == nullptr) *size = 0;
  *max_records = 0;  // as many as fit
}

// The leading fields of these records are the same in every version of the headers that we open.
void keep(const CUpti_Activity* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(recorded->mutex) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      recorded->intervals.push_back({kernel->start, kernel->end, kernel->correlationId,
                                     kernel->name == nullptr ? "?" : kernel->name});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      recorded->intervals.push_back({copy->start, copy->end, copy->correlationId, ""});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto* fill = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      recorded->intervals.push_back({fill->start, fill->end, fill->correlationId, ""});
      break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto* tie = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (tie->externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
        recorded->calls[tie->correlationId] = tie->externalId;
      break;
    }
    default:  // API records: there for the external ids that precede them
      break;
  }
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t, std::size_t valid) {
  const MutexLock lock(recorded->mutex);
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cupti.get_next_record(buffer, valid, &record) == CUPTI_SUCCESS) keep(record);
  std::size_t dropped = 0;
  if (cupti.get_dropped(context, stream, &dropped) == CUPTI_SUCCESS) recorded->dropped += dropped;
  std::free(buffer);
}

absl::Status status_of(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return absl::OkStatus();
  const char* text = nullptr;
  (void)cupti.get_result_string(result, &text);
  return absl::FailedPreconditionError(
      absl::StrFormat("cupti: %s: %s (%d)", what, text == nullptr ? "?" : text, int{result}));
}

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

class OpenCupti final : public Cupti {
 public:
  OpenCupti(std::string library, std::uint32_t version)
      : library_(std::move(library)), version_(version) {}

  const std::string& library() const override { return library_; }
  std::uint32_t version() const override { return version_; }

  absl::Status start(std::size_t buffer_bytes) override {
    clear();
    recorded->buffer_bytes = buffer_bytes;
    for (CUpti_ActivityKind kind : kKinds)
      KILN_RETURN_IF_ERROR(status_of(cupti.enable(kind), "cuptiActivityEnable"));
    return absl::OkStatus();
  }

  absl::Status stop() override {
    absl::Status first;
    for (CUpti_ActivityKind kind : kKinds)
      first.Update(status_of(cupti.disable(kind), "cuptiActivityDisable"));
    return first;
  }

  absl::Status begin_call(std::uint64_t call) override {
    return status_of(cupti.push_id(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, call),
                     "cuptiActivityPushExternalCorrelationId");
  }

  absl::Status end_call() override {
    std::uint64_t last = 0;
    return status_of(cupti.pop_id(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
                     "cuptiActivityPopExternalCorrelationId");
  }

  absl::StatusOr<std::map<std::uint64_t, DeviceWork>> collect() override {
    KILN_RETURN_IF_ERROR(
        status_of(cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll"));
    const MutexLock lock(recorded->mutex);
    if (recorded->dropped > 0)
      return absl::DataLossError(absl::StrFormat("cupti: dropped %u records", recorded->dropped));
    std::sort(recorded->intervals.begin(), recorded->intervals.end(),
              [](const Interval& a, const Interval& b) { return a.start < b.start; });
    using Intervals = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    std::map<std::uint64_t, std::pair<Intervals, Intervals>> spans;  // kernels, copies
    std::map<std::uint64_t, DeviceWork> work;
    for (const Interval& one : recorded->intervals) {
      const auto call = recorded->calls.find(one.correlation);
      if (call == recorded->calls.end()) continue;
      auto& [kernels, copies] = spans[call->second];
      (one.kernel.empty() ? copies : kernels).emplace_back(one.start, one.end);
      if (!one.kernel.empty()) work[call->second].kernels.push_back(one.kernel);
    }
    for (auto& [call, both] : spans) {
      work[call].kernel_us = static_cast<double>(union_length(std::move(both.first))) * 1e-3;
      work[call].copy_us = static_cast<double>(union_length(std::move(both.second))) * 1e-3;
    }
    return work;
  }

 private:
  static void clear() {
    // What is still in CUPTI's hands belongs to what was before.
    (void)cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const MutexLock lock(recorded->mutex);
    recorded->intervals.clear();
    recorded->calls.clear();
    recorded->dropped = 0;
  }

  std::string library_;
  std::uint32_t version_;
};

template <class F>
bool find(void* library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  return function != nullptr;
}

bool find_all(void* library) {
  return find(library, "cuptiGetVersion", cupti.get_version) &&
         find(library, "cuptiGetResultString", cupti.get_result_string) &&
         find(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks) &&
         find(library, "cuptiActivityEnable", cupti.enable) &&
         find(library, "cuptiActivityDisable", cupti.disable) &&
         find(library, "cuptiActivityFlushAll", cupti.flush_all) &&
         find(library, "cuptiActivityGetNextRecord", cupti.get_next_record) &&
         find(library, "cuptiActivityGetNumDroppedRecords", cupti.get_dropped) &&
         find(library, "cuptiActivityPushExternalCorrelationId", cupti.push_id) &&
         find(library, "cuptiActivityPopExternalCorrelationId", cupti.pop_id);
}

// Where a toolkit keeps it; first what the process may have loaded already, by its bare name.
std::vector<std::string> places(const std::string& library) {
  if (!library.empty()) return {library};
  const std::string name = "libcupti.so." + std::to_string(CUDA_VERSION / 1000);
  return {name, "/usr/local/cuda/extras/CUPTI/lib64/" + name, "/usr/local/cuda/lib64/" + name};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cupti>> Cupti::open(const std::string& library) {
  if (recorded != nullptr)
    return absl::AlreadyExistsError("cupti: serves one client in a process: there is one");
  std::string said;
  for (const std::string& place : places(library)) {
    void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const error = dlerror();
      said += absl::StrFormat("%s%s", said.empty() ? "" : "; ", error == nullptr ? "?" : error);
      continue;
    }
    if (!find_all(handle)) {
      said += place + " lacks a function";
      continue;
    }
    std::uint32_t version = 0;
    KILN_RETURN_IF_ERROR(status_of(cupti.get_version(&version), "cuptiGetVersion"));
    recorded = new Recorded;  // never freed: CUPTI's thread may still hand in a buffer at exit
    KILN_RETURN_IF_ERROR(status_of(cupti.register_callbacks(give_buffer, take_buffer),
                                   "cuptiActivityRegisterCallbacks"));
    return std::make_unique<OpenCupti>(place, version);
  }
  return absl::FailedPreconditionError("cupti: could not be opened: " + said);
}

#endif  // KILN_HAS_CUPTI

}  // namespace kiln::bench
