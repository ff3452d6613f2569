#include "runtime/cuda_device.h"

#include "jit/target.h"
#include "runtime/boards.h"
#include "runtime/cuda_context.h"
#include "runtime/cuda_launch.h"
#include "runtime/cuda_measure.h"
#include "runtime/cuda_memory.h"
#include "runtime/cuda_module.h"

#include <absl/base/optimization.h>
#include <absl/base/thread_annotations.h>
#include <absl/strings/str_format.h>

#include <array>
#include <atomic>
#include <map>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace kiln {
namespace {

constexpr std::uint64_t kImplicitCapture = ~std::uint64_t{0};  // no capture of its own

CUstream handle_of(const Stream& stream) { return static_cast<CUstream>(stream.handle); }

// An event with timing; destroyed with the scope.
class TimingEvent {
 public:
  explicit TimingEvent(const CudaDriver& driver) : driver_(driver) {
    result_ = driver_.event_create(&event_, CU_EVENT_DEFAULT);
  }
  ~TimingEvent() {
    if (event_ != nullptr) driver_.event_destroy(event_);
  }
  TimingEvent(const TimingEvent&) = delete;
  TimingEvent& operator=(const TimingEvent&) = delete;

  CUresult result() const { return result_; }
  CUevent handle() const { return event_; }

 private:
  const CudaDriver& driver_;
  CUevent event_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
};

class CudaSupport : public DeviceSupport {
 public:
  explicit CudaSupport(std::unique_ptr<Compiler> compiler) : compiler_(std::move(compiler)) {}

  DeviceType type() const override { return DeviceType::cuda(); }
  const Compiler& compiler() const override { return *compiler_; }

  absl::StatusOr<int> device_count() override {
    KILN_ASSIGN_OR_RETURN(const CudaContexts* cuda, contexts());
    return cuda->device_count();
  }

  absl::StatusOr<DeviceFacts> facts(int index) override;

  absl::StatusOr<std::string> target_for(const DeviceFacts& facts,
                                         bool arch_specific) const override {
    const std::string name = jit::target_name(facts.arch, arch_specific);
    KILN_RETURN_IF_ERROR(jit::parse_target(name).status());
    return name;
  }

  absl::StatusOr<std::unique_ptr<LoadedImage>> load(int index, std::string_view kind,
                                                    std::string_view image,
                                                    std::span<const std::string> kernels) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(index));
    return load_cuda_image(use.driver, use.context, kind, image, kernels);
  }

  absl::Status prepare(int index, void* function, std::uint32_t smem_bytes) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(index));
    MutexLock lock(prepare_mutex_);  // what is allowed is read and then raised
    return prepare_cuda_function(use.driver, use.context, static_cast<CUfunction>(function),
                                 smem_bytes);
  }

  absl::Status launch(void* function, const Stream& stream, const LaunchShape& shape,
                      void** args) override {
    // The hit path: two loads and no branch that is not foreseen.
    const CudaContexts* cuda = contexts_.load(std::memory_order_acquire);
    const CudaContext* context = cuda == nullptr ? nullptr : cuda->find(stream.device.index);
    if (ABSL_PREDICT_TRUE(context != nullptr)) {
      return launch_cuda(cuda->driver(), *context, static_cast<CUfunction>(function),
                         handle_of(stream), shape, args);
    }
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
    return launch_cuda(use.driver, use.context, static_cast<CUfunction>(function),
                       handle_of(stream), shape, args);
  }

  absl::StatusOr<bool> is_capturing(const Stream& stream) override;
  absl::StatusOr<std::uint64_t> capture_id(const Stream& stream) override;

  absl::StatusOr<void*> allocate(const Stream& stream, std::size_t bytes) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
    return allocate_cuda(use.driver, use.context, handle_of(stream), bytes);
  }
  absl::Status free(const Stream& stream, void* data) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
    return free_cuda(use.driver, use.context, handle_of(stream), data);
  }
  absl::Status copy_to_device(const Stream& stream, void* device, const void* host,
                              std::size_t bytes) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
    return copy_to_cuda(use.driver, use.context, handle_of(stream), device, host, bytes);
  }
  absl::Status copy_to_host(const Stream& stream, void* host, const void* device,
                            std::size_t bytes) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
    return copy_from_cuda(use.driver, use.context, handle_of(stream), host, device, bytes);
  }
  absl::Status copy_on_device(const Stream& stream, void* to, const void* from,
                              std::size_t bytes) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
    return copy_on_cuda(use.driver, use.context, handle_of(stream), to, from, bytes);
  }
  absl::Status fill(const Stream& stream, void* device, std::uint8_t value,
                    std::size_t bytes) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
    return fill_cuda(use.driver, use.context, handle_of(stream), device, value, bytes);
  }

  absl::Status synchronize(const Stream& stream) override;
  absl::StatusOr<Stream> create_stream(int index) override;
  absl::Status destroy_stream(const Stream& stream) override;
  absl::StatusOr<double> time(const Stream& stream,
                              const std::function<absl::Status()>& body) override;
  absl::StatusOr<double> measure(const Stream& stream, const std::function<absl::Status()>& body,
                                 int repeats, std::size_t flush_bytes) override {
    KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
    absl::StatusOr<double> seconds =
        measure_cuda(use.driver, use.context, handle_of(stream), body, repeats, flush_bytes);
    if (!absl::IsFailedPrecondition(seconds.status())) return seconds;
    return DeviceSupport::measure(stream, body, repeats, flush_bytes);
  }
  std::string measure_method() const override { return "graph replay, events"; }
  // Twice the second-level cache: what is written must push everything else out.
  std::size_t cache_bytes(int index) override {
    const absl::StatusOr<CudaContexts*> cuda = contexts();
    if (!cuda.ok()) return 0;
    const absl::StatusOr<int> bytes = (*cuda)->attribute(index, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    return bytes.ok() && *bytes > 0 ? 2 * static_cast<std::size_t>(*bytes) : 0;
  }
  std::string driver_version() override {
    const absl::StatusOr<CudaContexts*> cuda = contexts();
    if (!cuda.ok()) return "";
    const int version = (*cuda)->driver().version();
    return absl::StrFormat("cuda %d.%d", version / 1000, version % 1000 / 10);
  }

 private:
  // The driver and one device's context, both for the life of the process.
  struct Use {
    const CudaDriver& driver;
    const CudaContext& context;
  };

  absl::StatusOr<CudaContexts*> contexts() {
    if (CudaContexts* open = contexts_.load(std::memory_order_acquire)) return open;
    MutexLock lock(open_mutex_);
    if (CudaContexts* open = contexts_.load(std::memory_order_acquire)) return open;
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<CudaContexts> made, CudaContexts::open());
    // Never deleted: loaded images, which may outlive this object, refer to it, and so may the
    // driver's own threads.
    CudaContexts* open = made.release();
#if defined(__SANITIZE_ADDRESS__)
    __lsan_ignore_object(open);
#endif
    contexts_.store(open, std::memory_order_release);
    return open;
  }

  absl::StatusOr<Use> use_of(int index) {
    KILN_ASSIGN_OR_RETURN(CudaContexts * cuda, contexts());
    KILN_ASSIGN_OR_RETURN(const CudaContext* context, cuda->get(index));
    return Use{cuda->driver(), *context};
  }

  const std::unique_ptr<Compiler> compiler_;
  std::atomic<CudaContexts*> contexts_{nullptr};
  Mutex open_mutex_;
  Mutex prepare_mutex_;
  Mutex facts_mutex_;
  std::map<int, DeviceFacts> facts_ ABSL_GUARDED_BY(facts_mutex_);
};

// Needs no context: attributes can be read without one.
absl::StatusOr<DeviceFacts> read_facts(const CudaContexts& cuda, int index) {
  const CudaDriver& driver = cuda.driver();
  const auto what = [&] { return absl::StrFormat("cuda:%d: reading the device's facts", index); };
  DeviceFacts facts;
  KILN_ASSIGN_OR_RETURN(const int major,
                        cuda.attribute(index, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  KILN_ASSIGN_OR_RETURN(const int minor,
                        cuda.attribute(index, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  facts.arch = 10 * major + minor;
  KILN_ASSIGN_OR_RETURN(facts.sm_count,
                        cuda.attribute(index, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  KILN_ASSIGN_OR_RETURN(
      facts.smem_budget,
      cuda.attribute(index, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  KILN_ASSIGN_OR_RETURN(const CUdevice device, cuda.device(index));
  std::array<char, 256> name{};
  KILN_RETURN_IF_ERROR(driver.status(
      driver.device_get_name(name.data(), static_cast<int>(name.size()) - 1, device), what()));
  std::size_t memory_bytes = 0;
  KILN_RETURN_IF_ERROR(driver.status(driver.device_total_mem(&memory_bytes, device), what()));
  facts.calibration = calibrate(name.data(), memory_bytes, facts.sm_count, facts.arch);
  return facts;
}

absl::StatusOr<DeviceFacts> CudaSupport::facts(int index) {
  KILN_ASSIGN_OR_RETURN(const CudaContexts* cuda, contexts());
  KILN_RETURN_IF_ERROR(cuda->check(index));
  MutexLock lock(facts_mutex_);
  if (const auto known = facts_.find(index); known != facts_.end()) return known->second;
  KILN_ASSIGN_OR_RETURN(DeviceFacts facts, read_facts(*cuda, index));
  return facts_.emplace(index, std::move(facts)).first->second;
}

absl::StatusOr<bool> CudaSupport::is_capturing(const Stream& stream) {
  KILN_ASSIGN_OR_RETURN(const std::uint64_t id, capture_id(stream));
  return id != 0;
}

absl::StatusOr<std::uint64_t> CudaSupport::capture_id(const Stream& stream) {
  KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
  const ScopedContext current(use.driver, use.context);
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = current.result();
  cuuint64_t id = 0;
  if (result == CUDA_SUCCESS)
    result = use.driver.stream_get_capture_info(handle_of(stream), &state, &id);
  // The legacy stream while a stream that waits for it captures: work on it would break that
  // capture, which the question did not.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return kImplicitCapture;
  KILN_RETURN_IF_ERROR(use.driver.status(
      result,
      absl::StrFormat("cuda:%d: asking whether a stream is captured", stream.device.index)));
  return state == CU_STREAM_CAPTURE_STATUS_NONE ? 0 : std::uint64_t{id};
}

absl::Status CudaSupport::synchronize(const Stream& stream) {
  KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
  const ScopedContext current(use.driver, use.context);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = use.driver.stream_synchronize(handle_of(stream));
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return use.driver.status(result,
                           absl::StrFormat("cuda:%d: waiting for a stream", stream.device.index));
}

absl::StatusOr<Stream> CudaSupport::create_stream(int index) {
  KILN_ASSIGN_OR_RETURN(const Use use, use_of(index));
  const ScopedContext current(use.driver, use.context);
  CUstream stream = nullptr;
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = use.driver.stream_create(&stream, CU_STREAM_NON_BLOCKING);
  KILN_RETURN_IF_ERROR(
      use.driver.status(result, absl::StrFormat("cuda:%d: making a stream", index)));
  return Stream{{DeviceType::cuda(), static_cast<std::uint8_t>(index)}, stream};
}

absl::Status CudaSupport::destroy_stream(const Stream& stream) {
  const CUstream handle = handle_of(stream);
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cuda:%d: only a stream made by create_stream can be destroyed: got the "
                        "default stream %p",
                        stream.device.index, stream.handle));
  }
  KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
  const ScopedContext current(use.driver, use.context);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = use.driver.stream_destroy(handle);
  return use.driver.status(result,
                           absl::StrFormat("cuda:%d: destroying a stream", stream.device.index));
}

absl::StatusOr<double> CudaSupport::time(const Stream& stream,
                                         const std::function<absl::Status()>& body) {
  KILN_ASSIGN_OR_RETURN(const bool capturing, is_capturing(stream));
  if (capturing) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "cuda:%d: a stream that is being captured cannot be timed", stream.device.index));
  }
  KILN_ASSIGN_OR_RETURN(const Use use, use_of(stream.device.index));
  const CudaDriver& driver = use.driver;
  const auto check = [&](CUresult result) {
    return driver.status(result, absl::StrFormat("cuda:%d: timing", stream.device.index));
  };
  const ScopedContext current(driver, use.context);
  KILN_RETURN_IF_ERROR(check(current.result()));
  const TimingEvent begin(driver);
  const TimingEvent end(driver);
  KILN_RETURN_IF_ERROR(check(begin.result()));
  KILN_RETURN_IF_ERROR(check(end.result()));
  KILN_RETURN_IF_ERROR(check(driver.event_record(begin.handle(), handle_of(stream))));
  KILN_RETURN_IF_ERROR(body());
  KILN_RETURN_IF_ERROR(check(driver.event_record(end.handle(), handle_of(stream))));
  KILN_RETURN_IF_ERROR(check(driver.event_synchronize(end.handle())));
  float milliseconds = 0;
  KILN_RETURN_IF_ERROR(
      check(driver.event_elapsed_time(&milliseconds, begin.handle(), end.handle())));
  return milliseconds * 1e-3;
}

}  // namespace

std::unique_ptr<DeviceSupport> make_cuda_support(std::unique_ptr<Compiler> compiler) {
  return std::make_unique<CudaSupport>(std::move(compiler));
}

}  // namespace kiln
