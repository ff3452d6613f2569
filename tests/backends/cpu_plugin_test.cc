#include <kiln/kiln.h>
#include <kiln/ops/layer_norm.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kiln {
namespace {

using testing::is_ok;
using testing::TempDir;

constexpr Device kCpu{DeviceType::cpu(), 0};

class CpuPluginTest : public ::testing::Test {
 protected:
  RuntimeOptions options() const {
    RuntimeOptions options;
    options.cache_dir = cache_ / "cache";
    options.backend_path = {KILN_CPU_BACKEND_FILE};
    return options;
  }
  // One call on rows of n zeros and ones; `loads`: the images loaded when it returned. (The op's
  // end waits for what it builds behind calls.)
  static void run(Runtime& runtime, std::int64_t n, const std::string& chosen,
                  std::int64_t* loads = nullptr) {
    auto op = LayerNormFwdOp::create({.normalized_shape = {n}},
                                     {.runtime = &runtime, .record_calls = true});
    ASSERT_THAT(op, is_ok());
    std::vector<float> x(static_cast<std::size_t>(3 * n)), y(x.size(), -7);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 2);
    const Dims shape{3, n};
    ASSERT_THAT(
        (*op)->forward({kCpu, nullptr}, Tensor::contiguous(x.data(), kCpu, DType::float32, shape),
                       nullptr, nullptr, Tensor::contiguous(y.data(), kCpu, DType::float32, shape)),
        is_ok());
    if (loads != nullptr) *loads = runtime.stats().loads;
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(y[i], (x[i] - 0.5) / std::sqrt(0.25 + 1e-5), 1e-6) << i;
    }
    ASSERT_TRUE((*op)->last_call().has_value());
    EXPECT_EQ((*op)->last_call()->keys, std::vector<std::string>{chosen});
  }

  TempDir cache_;
};

// Each length is an op of its own, as each layer of a model is: what one of them has built serves
// the others while their own is built.
TEST_F(CpuPluginTest, AsyncIsServedByWhatAnotherOpHasBuilt) {
  RuntimeOptions async = options();
  async.policy = CompilePolicy::async;
  Runtime runtime(async);
  run(runtime, 1024, "cpu_layer_norm");
  EXPECT_EQ(runtime.stats().stand_ins, 0);
  const std::int64_t before = runtime.stats().loads;
  std::int64_t after = 0;
  run(runtime, 32, "cpu_layer_norm", &after);  // at once, while cpu_layer_norm_short is compiled
  EXPECT_EQ(runtime.stats().stand_ins, 1);
  EXPECT_EQ(after, before) << "its image was loaded already";
}

TEST_F(CpuPluginTest, ACallBuildsItsKernelOnce) {
  {
    Runtime runtime(options());
    run(runtime, 1024, "cpu_layer_norm");
    run(runtime, 32, "cpu_layer_norm_short");
    run(runtime, 2048, "cpu_layer_norm");  // the same binary as for 1024
    EXPECT_EQ(runtime.stats().compilations, 2);
    for (const LoadFailure& failure : runtime.load_failures())
      ADD_FAILURE() << failure.file << ": " << failure.reason;
  }
  Runtime again(options());
  run(again, 1024, "cpu_layer_norm");
  run(again, 32, "cpu_layer_norm_short");
  EXPECT_EQ(again.stats().compilations, 0);
  EXPECT_EQ(again.stats().disk_hits, 2);
}

}  // namespace
}  // namespace kiln
