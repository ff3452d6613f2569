// Tuning on the device: kernels of the tree, and one that is planted to fault.
#include <kiln/kiln.h>
#include <kiln/ops/layer_norm.h>

#include "tests/support/gpu.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const Device kGpu{DeviceType::cuda(), 0};

std::unique_ptr<Runtime> runtime_on(const std::string& folder) {
  RuntimeOptions options;
  options.cache_dir = folder;
  return std::make_unique<Runtime>(options);
}

CallArgs args_of(const Op& op, const std::vector<std::pair<DType, Dims>>& inputs) {
  CallArgs args;
  for (const auto& [dtype, shape] : inputs)
    args.inputs.emplace_back(contiguous_arg({kGpu, dtype, shape}));
  args.inputs.resize(op.signature().inputs.size());
  const auto outputs = infer_outputs(op.signature(), op.params(), args.inputs);
  EXPECT_THAT(outputs, is_ok());
  for (const TensorSpec& spec : *outputs) args.outputs.emplace_back(contiguous_arg(spec));
  return args;
}

void print(const TuneReport& report) {
  std::printf("%s %s: %s -> %s, %.3g us -> %.3g us, %zu candidates in %.1f s; %s\n",
              report.implementation.c_str(), report.problem.c_str(),
              to_string(report.default_config).c_str(), to_string(report.winner).c_str(),
              report.default_seconds * 1e6, report.winner_seconds * 1e6, report.candidates.size(),
              report.sweep_seconds, report.decision.c_str());
}

class TuningGpuTest : public ::testing::Test {
 protected:
  void SetUp() override { KILN_NEEDS_GPU(); }
  TempDir folder_;
};

TEST_F(TuningGpuTest, LayerNormIsSweptAndItsRecordUsedAgain) {
  Config winner;
  {
    const auto runtime = runtime_on(folder_ / "cache");
    const auto op =
        LayerNormFwdOp::create({.normalized_shape = {4096}}, {.runtime = runtime.get()});
    ASSERT_THAT(op, is_ok());
    const CallArgs args = args_of(**op, {{DType::float16, {2048, 4096}}});
    ASSERT_THAT((*op)->tune(args, kGpu), is_ok());
    ASSERT_THAT((*op)->tune_reports(), SizeIs(1));
    const TuneReport report = (*op)->tune_reports()[0];
    print(report);
    ASSERT_THAT(report.status, is_ok());
    EXPECT_THAT(report.method, HasSubstr("graph replay, events, cold"));
    EXPECT_GT(report.default_seconds, 2e-6);
    EXPECT_LT(report.default_seconds, 1e-3);
    for (const TuneCandidate& candidate : report.candidates) {
      EXPECT_NE(candidate.state, CandidateState::wrong)
          << to_string(candidate.config) << ": " << candidate.reason;
      if (candidate.state == CandidateState::measured) {
        EXPECT_GT(candidate.registers, 0);
        EXPECT_GT(candidate.occupancy, 0);
      }
    }
    winner = report.winner;
    EXPECT_EQ((*op)->kernel_config(), winner);
  }
  const auto runtime = runtime_on(folder_ / "cache");
  const auto op = LayerNormFwdOp::create({.normalized_shape = {4096}}, {.runtime = runtime.get()});
  ASSERT_THAT(op, is_ok());
  const CallArgs args = args_of(**op, {{DType::float16, {2048, 4096}}});
  EXPECT_THAT((*op)->prefetch(args, kGpu).get(), is_ok());
  EXPECT_EQ((*op)->kernel_config(), winner);
  EXPECT_EQ(runtime->stats().sweeps, 0);
  EXPECT_EQ(runtime->stats().tuned_loads, 1);
}

TEST_F(TuningGpuTest, TwoSweepsOfOneKernelAgreeWithinTheirSpread) {
  const auto runtime = runtime_on(folder_ / "cache");
  std::vector<TuneReport> reports;
  for (int i = 0; i < 2; ++i) {
    const auto op =
        LayerNormFwdOp::create({.normalized_shape = {8192}}, {.runtime = runtime.get()});
    ASSERT_THAT(op, is_ok());
    TuneOptions options;
    options.force = true;
    ASSERT_THAT((*op)->tune(args_of(**op, {{DType::float16, {2048, 8192}}}), kGpu, options),
                is_ok());
    reports.push_back((*op)->tune_reports().at(0));
    print(reports.back());
    ASSERT_THAT(reports.back().status, is_ok());
  }
  EXPECT_NEAR(reports[0].winner_seconds / reports[1].winner_seconds, 1, 0.05);
}

TEST_F(TuningGpuTest, GemmIsSwept) {
  const auto runtime = runtime_on(folder_ / "cache");
  const auto op = runtime->create_op("GemmFwdOp", {});
  ASSERT_THAT(op, is_ok());
  const CallArgs args =
      args_of(**op, {{DType::bfloat16, {128, 2048}}, {DType::bfloat16, {512, 2048}}});
  ASSERT_THAT((*op)->tune(args, kGpu), is_ok());
  const std::vector<TuneReport> reports = (*op)->tune_reports();
  ASSERT_THAT(reports, Not(IsEmpty()));
  print(reports[0]);
  EXPECT_THAT(reports[0].status, is_ok());
}

// y = 2 x by one thread a value; a candidate writes where nothing is.
constexpr std::string_view kFaulting = R"(
extern "C" __global__ void twice(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
#if FAULTS
  y += 1ll << 44;
#endif
  if (i < n) y[i] = 2 * x[i];
}
)";

struct TwiceCall {
  std::int64_t n = 0;
  KILN_CALL_SPEC(TwiceCall, n)
};
struct TwiceFwdInterface : KernelInterface<TwiceCall> {
  KILN_KERNEL_INTERFACE(TwiceFwdInterface, forward)
  virtual absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& y) const = 0;
};
class TwiceFwdOp final : public OpOf<TwiceFwdOp> {
 public:
  using Interfaces = kiln::Interfaces<Named<"twice_fwd", TwiceFwdInterface>>;
  static Signature signature() {
    Signature s;
    s.op = "TwiceFwdOp";
    s.inputs = {{.name = "x", .dtypes = {DType::float32}, .shape = "n"}};
    s.outputs = {{.name = "y", .dtype_of = "x", .shape = "n"}};
    return s;
  }
  explicit TwiceFwdOp(OpInit init) : OpOf(std::move(init)) {}

 protected:
  absl::StatusOr<std::vector<KernelCall>> plan_call(const CallArgs& args) const override {
    return std::vector<KernelCall>{{"twice_fwd", TwiceCall{.n = args.inputs[0]->spec.shape[0]}}};
  }
  absl::Status execute(const CallView& call) override {
    return call.kernel<TwiceFwdInterface>(0).forward(call.stream(), call.input(0), call.output(0));
  }
};
class TwiceKernel final : public Kernel, public TwiceFwdInterface {
 public:
  static Entry<TwiceKernel> entry_for(const TwiceCall& call) { return Entry<TwiceKernel>(call.n); }
  explicit TwiceKernel(std::int64_t n) : n_(n) {}
  std::vector<Program> programs(const DeviceFacts&, const Config& config) const override {
    return {{.source = "tests/gpu/twice.cu",
             .kernels = {"twice"},
             .constants = {{"FAULTS", config["faults"]}}}};
  }
  Config default_config(const DeviceFacts&) const override { return {{"faults", 0}}; }
  std::vector<Config> autotune_configs(const DeviceFacts&) const override {
    return {{{"faults", 0}}, {{"faults", 1}}};
  }
  absl::Status forward(const Stream& stream, const Tensor& x, const Tensor& y) const override {
    LaunchShape shape;
    shape.grid[0] = static_cast<std::uint32_t>((n_ + 255) / 256);
    shape.block[0] = 256;
    return launch(loaded(stream), 0, stream, shape, x.data, y.data, static_cast<long long>(n_));
  }

 private:
  const std::int64_t n_;
};

// In a process of its own: the device's error stays.
[[noreturn]] void tune_the_faulting(const std::string& folder) {
  const auto runtime = runtime_on(folder);
  Registry registry("tuning test");
  registry.add_sources({{"tests/gpu/twice.cu", kFaulting}});
  registry.add_op<TwiceFwdOp>();
  registry.register_kernel_type("TwiceFwdOp", "twice", kernel_type<TwiceKernel>());
  if (!runtime->commit(std::move(registry)).ok()) std::_Exit(2);
  const auto op = TwiceFwdOp::create_from({}, {.runtime = runtime.get()});
  if (!op.ok() || !(*op)->tune(args_of(**op, {{DType::float32, {4096}}}), kGpu).ok()) std::_Exit(3);
  const TuneReport report = (*op)->tune_reports().at(0);
  std::fprintf(stderr, "%s\n", message_of(report.status).c_str());
  const bool told = absl::IsAborted(report.status) &&
                    report.candidates.at(1).state == CandidateState::failed &&
                    (*op)->kernel_config() == report.default_config;
  std::_Exit(told ? 0 : 4);
}

TEST_F(TuningGpuTest, AFaultingCandidateIsReportedAsWhatItIsAndTheProcessLives) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(tune_the_faulting(folder_ / "cache"), ::testing::ExitedWithCode(0),
              "faults=1.*the device's error stays");
}

}  // namespace
}  // namespace kiln::testing
