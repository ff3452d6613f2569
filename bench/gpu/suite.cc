#include "bench/gpu/suite.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace kiln::bench {
namespace {

using internal::Json;

constexpr std::size_t kMaxCopy = std::size_t{2} << 30;  // bytes read, and as many written

constexpr char kDifference[] = R"(
__device__ float value(const void* p, long long i, int dtype) {
  if (dtype == 2) return static_cast<const float*>(p)[i];
  const unsigned short bits = static_cast<const unsigned short*>(p)[i];
  if (dtype == 1) return __uint_as_float(static_cast<unsigned>(bits) << 16);
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
  return f;
}
// `worst` holds a float that is not negative, whose bits grow with it.
extern "C" __global__ void difference(const void* a, const void* b, long long count, int dtype,
                                      unsigned* worst) {
  float most = 0.f;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
    const float u = value(a, i, dtype), v = value(b, i, dtype);
    if (u == v || (u != u && v != v)) continue;
    const float d = fabsf(u - v) / (1.f + fabsf(v));
    most = d == d ? fmaxf(most, d) : __uint_as_float(0x7f800000u);
  }
  if (most > 0.f) atomicMax(worst, __float_as_uint(most));
}
)";

Json json_of(const Spread& spread) {
  Json json;
  json["median"] = spread.median;
  json["p10"] = spread.p10;
  json["p90"] = spread.p90;
  json["count"] = spread.count;
  return json;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Suite>> Suite::open(const SuiteOptions& options) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<CudaSession> session, CudaSession::open(options.device));
  std::unique_ptr<Suite> suite(new Suite(RuntimeOptions::from_environment()));
  KILN_ASSIGN_OR_RETURN(suite->support_, suite->runtime_.device_support(DeviceType::cuda()));
  suite->session_ = std::move(session);
  auto cupti = Cupti::open(options.cupti);
  const std::string why = message_of(cupti.status());
  suite->timer_ = std::make_unique<DeviceTimer>(*suite->session_,
                                                cupti.ok() ? *std::move(cupti) : nullptr, why);
  auto nvml = Nvml::open(suite->session_->pci_bus_id());
  if (nvml.ok()) suite->nvml_ = *std::move(nvml);
  return suite;
}

Stream Suite::stream(void* handle) const {
  return {{DeviceType::cuda(), static_cast<std::uint8_t>(session_->index())}, handle};
}

Json Suite::machine() const {
  Json json;
  json["device"] = session_->name();
  json["driver"] = nvml_ == nullptr ? "" : nvml_->driver_version();
  json["cuda_driver"] = session_->driver().version();
  json["toolkit"] = CUDA_VERSION;
  json["sm_count"] = session_->sm_count();
  json["l2_bytes"] = session_->l2_bytes();
  json["host_threads"] = std::thread::hardware_concurrency();
  json["kiln"] = KILN_VERSION_STRING;
  const auto compiler = support_->compiler().id();
  json["compiler"] =
      compiler.ok() ? compiler->name + " " + compiler->build : message_of(compiler.status());
  const Cupti* const cupti = timer_->cupti();
  json["cupti"] = cupti == nullptr
                      ? timer_->why_no_cupti()
                      : absl::StrFormat("%s, API %u", cupti->library(), cupti->version());
  return json;
}

Json Suite::device_state() const {
  if (nvml_ == nullptr) return nullptr;
  const DeviceState state = nvml_->state();
  Json json;
  json["sm_mhz"] = state.sm_mhz;
  json["memory_mhz"] = state.memory_mhz;
  json["watts"] = state.watts;
  json["celsius"] = state.celsius;
  json["throttle_reasons"] = state.throttle_reasons;
  return json;
}

absl::StatusOr<Contender> Suite::copy_of(std::size_t bytes, CUstream stream) {
  if (copy_memory_ == 0) {
    KILN_ASSIGN_OR_RETURN(copy_memory_, session_->allocate(2 * kMaxCopy));
    KILN_RETURN_IF_ERROR(session_->driver().status(
        session_->driver().memset_d8_async(copy_memory_, 0x5A, 2 * kMaxCopy, stream),
        "cuMemsetD8Async"));
  }
  const std::size_t half = std::clamp<std::size_t>(bytes / 2, 16, kMaxCopy);
  return Contender{"copy",
                   [this, half, stream] {
                     const CudaDriver& d = session_->driver();
                     return d.status(
                         d.memcpy_dtod_async(copy_memory_ + kMaxCopy, copy_memory_, half, stream),
                         "cuMemcpyDtoDAsync");
                   },
                   /*is_copy=*/true,
                   /*bytes=*/2.0 * static_cast<double>(half)};
}

absl::StatusOr<std::unique_ptr<LoadedImage>> Suite::compile(
    const std::string& source, const std::vector<std::string>& kernels) {
  CompileRequest request;
  request.source_name = "bench/gpu/" + kernels[0] + ".cu";
  request.source = source;
  request.kernels = kernels;
  KILN_ASSIGN_OR_RETURN(const DeviceFacts facts, support_->facts(session_->index()));
  KILN_ASSIGN_OR_RETURN(request.target, support_->target_for(facts, false));
  KILN_ASSIGN_OR_RETURN(const CompileResult result, support_->compiler().compile(request));
  return support_->load(session_->index(), result.kind, result.image, kernels);
}

absl::StatusOr<double> Suite::difference(const Tensor& a, const Tensor& b, CUstream stream) {
  if (difference_image_ == nullptr) {
    KILN_ASSIGN_OR_RETURN(difference_image_, compile(kDifference, {"difference"}));
  }
  const Stream here = this->stream(stream);
  KILN_ASSIGN_OR_RETURN(OwnedTensor worst,
                        OwnedTensor::allocate(*support_, here, DType::float32, {1}));
  KILN_RETURN_IF_ERROR(support_->fill(here, worst.tensor().data, 0, 4));
  const long long count = a.elements();
  const int dtype = a.dtype == DType::float16 ? 0 : a.dtype == DType::bfloat16 ? 1 : 2;
  void* to = worst.tensor().data;
  const void* args[] = {&a.data, &b.data, &count, &dtype, &to};
  KILN_RETURN_IF_ERROR(support_->launch(difference_image_->functions()[0], here,
                                        {.grid = {1024, 1, 1}, .block = {256, 1, 1}},
                                        const_cast<void**>(args)));
  float value = 0;
  KILN_RETURN_IF_ERROR(support_->copy_to_host(here, &value, to, 4));
  KILN_RETURN_IF_ERROR(support_->synchronize(here));
  return value;
}

absl::StatusOr<Contender> Suite::empty_kernel(CUstream stream) {
  KILN_ASSIGN_OR_RETURN(empty_image_,
                        compile("extern \"C\" __global__ void empty() {}", {"empty"}));
  void* const function = empty_image_->functions()[0];
  return Contender{"empty kernel", [this, function, stream] {
                     const LaunchShape shape{.block = {32, 1, 1}};
                     return support_->launch(function, this->stream(stream), shape, nullptr);
                   }};
}

absl::StatusOr<std::function<absl::Status()>> Suite::bare_launch(CUstream stream) {
  KILN_ASSIGN_OR_RETURN(
      bare_image_,
      compile("extern \"C\" __global__ void bare(const void*, const void*, const void*, void*, "
              "long long, long long) {}",
              {"bare"}));
  const auto function = static_cast<CUfunction>(bare_image_->functions()[0]);
  return [this, function, stream] {
    CUlaunchConfig config{};
    config.gridDimX = 1024;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 128;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    const void* tensor = nullptr;
    long long rows = 0, stride = 0;
    void* args[] = {&tensor, &tensor, &tensor, &tensor, &rows, &stride};
    const CudaDriver& d = session_->driver();
    const CUresult result = d.launch_kernel_ex(&config, function, args, nullptr);
    return result == CUDA_SUCCESS ? absl::OkStatus() : d.status(result, "cuLaunchKernelEx");
  };
}

absl::StatusOr<std::vector<double>> Suite::host_us(const std::function<absl::Status()>& call,
                                                   CUstream stream, int calls, int rounds) {
  std::vector<double> us;
  for (int round = -1; round < rounds; ++round) {  // one to warm up
    KILN_RETURN_IF_ERROR(session_->synchronize(stream));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) KILN_RETURN_IF_ERROR(call());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (round >= 0) us.push_back(took.count() / calls);
  }
  KILN_RETURN_IF_ERROR(session_->synchronize(stream));
  return us;
}

absl::StatusOr<Json> Suite::floor(const TimerOptions& options) {
  const CUstream stream = session_->stream();
  std::vector<Contender> contenders;
  const std::size_t sizes[] = {2 * kMaxCopy, std::size_t{512} << 20, std::size_t{64} << 20,
                               std::size_t{16} << 20};
  for (const std::size_t bytes : sizes) {
    KILN_ASSIGN_OR_RETURN(Contender copy, copy_of(bytes, stream));
    contenders.push_back(std::move(copy));
  }
  KILN_ASSIGN_OR_RETURN(Contender empty, empty_kernel(stream));
  contenders.push_back(std::move(empty));
  const std::vector<Timing> timings = timer_->measure(stream, contenders, options);
  Json json;
  json["copy"] = Json::array();
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    KILN_RETURN_IF_ERROR(timings[i].status);
    Json one;
    one["bytes"] = sizes[i];
    one["us"] = json_of(timings[i].us);
    one["clock"] = timings[i].clock;
    one["bytes_per_second"] = static_cast<double>(sizes[i]) / timings[i].us.median * 1e6;
    json["copy"].push_back(std::move(one));
  }
  KILN_RETURN_IF_ERROR(timings.back().status);
  json["empty_kernel_us"] = json_of(timings.back().us);
  json["bytes_per_second"] = json["copy"][0]["bytes_per_second"];
  return json;
}

Json json_of(const TimerOptions& options, const CudaSession& session) {
  Json json;
  json["clock"] =
      "CUPTI kernel records tied by external correlation; union of the intervals of a call";
  json["l2"] = options.cold_l2 ? absl::StrFormat("flushed: %d MiB zeroed before every iteration",
                                                 session.flush_bytes() >> 20)
                               : "warm";
  json["order"] = "A B C C B A, half of the iterations in each pass";
  json["warm_up_ms"] = options.warm_up_ms;
  json["measure_ms"] = options.measure_ms;
  json["iterations"] = {options.min_iterations, options.max_iterations};
  json["graph"] = "wall time a call of a replayed graph, L2 warm";
  return json;
}

Json json_of(const Timing& timing) {
  Json json;
  json["name"] = timing.name;
  if (timing.bytes > 0) json["bytes"] = timing.bytes;
  if (!timing.status.ok()) {
    json["error"] = message_of(timing.status);
    return json;
  }
  json["clock"] = timing.clock;
  json["us"] = json_of(timing.us);
  json["pass_us"] = timing.pass_us;
  json["kernels"] = timing.kernels.size();
  json["kernel_names"] = timing.kernels;
  if (timing.copy_us > 0) json["copy_us"] = timing.copy_us;
  if (timing.graph_us) json["graph_us"] = json_of(*timing.graph_us);
  if (!timing.graph_status.ok()) json["graph_error"] = message_of(timing.graph_status);
  return json;
}

}  // namespace kiln::bench
