#ifndef KILN_TESTS_TUNING_TUNING_BACKEND_H_
#define KILN_TESTS_TUNING_TUNING_BACKEND_H_

#include <kiln/kiln.h>
#include <kiln/registry.h>
#include <kiln/sources.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// An op for tests of tuning, with a kernel that the CPU backend compiles: y = 2 x, over and over.
// Its default configuration does eight times the work that is needed, so that sweeps have something
// to find; and parameter `traps` plants candidates that are wrong, crash, hang or do not compile.
namespace kiln::tuning_backend {

enum Trap : std::int64_t {
  kNone = 0,
  kWrong = 1,          // a candidate whose result is wrong
  kCrash = 2,          // one that crashes
  kHang = 4,           // one that never ends
  kNoCompile = 8,      // one that does not compile
  kMany = 16,          // forty further candidates
  kTwins = 32,         // no candidate but one that is the default by another name
  kNoTuning = 64,      // no candidates at all
  kNoLengths = 128,    // does not supply the input that decides how much work is done
  kCrashDefault = 256  // the default crashes
};

inline constexpr std::string_view kSource = R"(
#include "backends/cpu/kernels/block.hpp"

KILN_CPU_KERNEL(tuning_toy) {
  const auto* const x = kiln::arg<const float*>(args, 0);
  auto* const y = kiln::arg<float*>(args, 1);
  auto* const state = kiln::arg<float*>(args, 2);
  const auto* const lengths = kiln::arg<const int*>(args, 3);
  long n = kiln::arg<long>(args, 4);
  if (lengths != nullptr) n = lengths[0] < n ? lengths[0] : n;
#if KIND == 1
  const float bias = 1;
#else
  const float bias = 0;
#endif
#if KIND == 2
  __builtin_trap();  // SIGILL, which no sanitizer's runtime catches
#endif
#if KIND == 3
  for (volatile bool forever = true; forever;) {
  }
#endif
#if KIND == 4
  this does not compile;
#endif
  for (long pass = 0; pass < WORK; ++pass) {
    for (long i = 0; i < n; ++i) {
      y[i] = 2 * x[i] + bias;
      asm volatile("" ::: "memory");
    }
  }
  if (state != nullptr) {
    for (long i = 0; i < n; ++i) state[i] += x[i];
  }
}
)";

struct TuningToyCall {
  std::int64_t traps = 0;
  KILN_CALL_SPEC(TuningToyCall, traps)
};

struct TuningToyFwdInterface : KernelInterface<TuningToyCall> {
  KILN_KERNEL_INTERFACE(TuningToyFwdInterface, forward)
  // `state` and `lengths` have a null pointer when they are not passed.
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& state,
                               const Tensor& lengths, const Tensor& y) const = 0;
};

class TuningToyFwdOp final : public OpOf<TuningToyFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"tuning_toy_fwd", TuningToyFwdInterface>>;
  static Signature signature() {
    Signature s;
    s.op = "TuningToyFwdOp";
    s.inputs = {{.name = "x", .dtypes = {DType::float32}, .shape = "n"},
                {.name = "state",
                 .dtypes = {DType::float32},
                 .shape = "n",
                 .optional = true,
                 .written = true},
                {.name = "lengths", .dtypes = {DType::int32}, .shape = "b", .optional = true}};
    s.params = {{"traps", ParamType::integer, FieldValue(std::int64_t{0})}};
    s.outputs = {{.name = "y", .dtype_of = "x", .shape = "n"}};
    return s;
  }
  explicit TuningToyFwdOp(OpInit init) : OpOf(std::move(init)) {}

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override {
    TuningToyCall call{.traps = std::get<std::int64_t>(*find_param(params(), "traps"))};
    call.where.device = args.inputs[0]->spec.device;
    return std::vector<KernelCall>{{"tuning_toy_fwd", call}};
  }
  absl::Status execute(const CallView& call) override {
    // Sweeps must get scratch memory too.
    KILN_RETURN_IF_ERROR(workspace(call.stream(), 64).status());
    const Tensor none{};
    return call.kernel<TuningToyFwdInterface>(0).forward(
        call.stream(), call.input(0), call.has_input(1) ? call.input(1) : none,
        call.has_input(2) ? call.input(2) : none, call.output(0));
  }
};

class TuningToyKernel final : public Kernel, public TuningToyFwdInterface {
 public:
  static constexpr std::array devices{DeviceType::cpu()};
  static Entry<TuningToyKernel> entry_for(const TuningToyCall& call) {
    return Entry<TuningToyKernel>(call.traps);
  }
  explicit TuningToyKernel(std::int64_t traps) : traps_(traps) {}

  std::vector<Program> programs(const DeviceFacts&, const Config& config) const override {
    return {{.source = "tests/tuning/tuning_toy.cpp",
             .headers = {"backends/cpu/kernels/block.hpp"},
             .kernels = {"tuning_toy"},
             .constants = {{"WORK", config["work"]}, {"KIND", config["kind"]}},
             .options = {"-fvisibility=hidden", "-Wl,--as-needed"}}};
  }
  Config default_config(const DeviceFacts&) const override {
    return make(8, traps_ & kCrashDefault ? 2 : 0);
  }
  std::vector<Config> autotune_configs(const DeviceFacts&) const override {
    if (traps_ & kNoTuning) return {};
    if (traps_ & kTwins) return {make(8, 0, 1)};
    std::vector<Config> configs = {make(8, 0), make(1, 0), make(4, 0)};
    if (traps_ & kWrong) configs.push_back(make(0, 1));
    if (traps_ & kWrong) configs.push_back(make(1, 1));
    if (traps_ & kCrash) configs.push_back(make(1, 2));
    if (traps_ & kHang) configs.push_back(make(1, 3));
    if (traps_ & kNoCompile) configs.push_back(make(1, 4));
    for (std::int64_t i = 0; (traps_ & kMany) && i < 40; ++i) configs.push_back(make(2, 0, i + 1));
    return configs;
  }
  std::optional<std::vector<double>> tuning_input(std::string_view name,
                                                  const TensorSpec& spec) const override {
    if (name != "lengths" || (traps_ & kNoLengths)) return std::nullopt;
    return std::vector<double>(static_cast<std::size_t>(numel(spec.shape)), 1 << 20);
  }
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& state,
                       const Tensor& lengths, const Tensor& y) const override {
    const void* const from = x.data;
    const void* const limit = lengths.data;
    return launch(loaded(stream), 0, stream, LaunchShape{}, from, y.data, state.data, limit,
                  static_cast<long>(x.shape[0]));
  }

 private:
  // `twin` tells configurations apart that compile to the same.
  static Config make(std::int64_t work, std::int64_t kind, std::int64_t twin = 0) {
    return {{"work", work}, {"kind", kind}, {"twin", twin}};
  }
  const std::int64_t traps_;
};

inline absl::Status fill(Registry& registry) {
  registry.add_sources({{"tests/tuning/tuning_toy.cpp", kSource}});
  registry.add_op<TuningToyFwdOp>();
  registry.register_kernel_type("TuningToyFwdOp", "tuning_toy", kernel_type<TuningToyKernel>());
  return absl::OkStatus();
}

}  // namespace kiln::tuning_backend

#endif  // KILN_TESTS_TUNING_TUNING_BACKEND_H_
