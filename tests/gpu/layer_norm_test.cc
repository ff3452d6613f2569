// LayerNorm's hard cases on the device, through the op.
#include <kiln/kiln.h>
#include <kiln/ops/layer_norm.h>

#include "runtime/dtype_convert.h"
#include "tests/support/gpu.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

class LayerNormGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KILN_NEEDS_GPU();
    RuntimeOptions options;
    options.cache_dir = folder_.path() + "/cache";
    runtime_ = std::make_unique<Runtime>(options);
    auto support = runtime_->device_support(DeviceType::cuda());
    ASSERT_THAT(support, is_ok());
    support_ = *support;
    auto stream = support_->create_stream(0);
    ASSERT_THAT(stream, is_ok());
    stream_ = *stream;
  }
  void TearDown() override {
    if (support_ != nullptr) (void)support_->destroy_stream(stream_);
  }
  std::unique_ptr<LayerNormFwdOp> op(std::int64_t n, OpOptions options = {}) {
    options.runtime = runtime_.get();
    auto made = LayerNormFwdOp::create({.normalized_shape = {n}}, options);
    EXPECT_THAT(made, is_ok());
    return *std::move(made);
  }
  OwnedTensor tensor(DType dtype, const Dims& shape) {
    auto owned = OwnedTensor::allocate(*support_, stream_, dtype, shape);
    EXPECT_THAT(owned, is_ok());
    return *std::move(owned);
  }
  void upload(const Tensor& to, const std::vector<double>& values) {
    std::vector<char> bytes(values.size() * static_cast<std::size_t>(size_of(to.dtype)));
    internal::store_elements(to.dtype, bytes.data(), values.data(), values.size());
    ASSERT_THAT(support_->copy_to_device(stream_, to.data, bytes.data(), bytes.size()), is_ok());
    ASSERT_THAT(support_->synchronize(stream_), is_ok());
  }
  std::vector<double> download(const Tensor& from, std::int64_t first, std::int64_t count) {
    const auto size = static_cast<std::size_t>(size_of(from.dtype));
    std::vector<char> bytes(static_cast<std::size_t>(count) * size);
    EXPECT_THAT(
        support_->copy_to_host(
            stream_, bytes.data(),
            static_cast<char*>(from.data) + first * static_cast<std::int64_t>(size), bytes.size()),
        is_ok());
    EXPECT_THAT(support_->synchronize(stream_), is_ok());
    std::vector<double> values(static_cast<std::size_t>(count));
    internal::load_elements(from.dtype, values.data(), bytes.data(), values.size());
    return values;
  }
  // Values as the dtype holds them.
  static std::vector<double> rounded(DType dtype, std::vector<double> values) {
    for (double& v : values) {
      char element[8];
      internal::store_element(dtype, element, v);
      v = internal::load_element(dtype, element);
    }
    return values;
  }
  static std::vector<double> normal(std::size_t count, double mean, double deviation,
                                    unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> draw(mean, deviation);
    std::vector<double> values(count);
    for (double& v : values) v = draw(random);
    return values;
  }
  // (x - mean) / sqrt(var + 1e-5) of one row.
  static std::vector<double> normalized(const std::vector<double>& x) {
    const auto n = static_cast<double>(x.size());
    double sum = 0, squares = 0;
    for (double v : x) sum += v;
    for (double v : x) squares += (v - sum / n) * (v - sum / n);
    std::vector<double> y;
    for (double v : x) y.push_back((v - sum / n) / std::sqrt(squares / n + 1e-5));
    return y;
  }
  static double worst(const std::vector<double>& got, const std::vector<double>& want) {
    double most = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double error = std::abs(got[i] - want[i]);
      most = std::isfinite(error) ? std::max(most, error) : std::numeric_limits<double>::infinity();
    }
    return most;
  }

  TempDir folder_;
  std::unique_ptr<Runtime> runtime_;
  DeviceSupport* support_ = nullptr;
  Stream stream_;
};

TEST_F(LayerNormGpuTest, ALargeMeanDoesNotDrownTheVariance) {
  for (std::int64_t n : {31, 1000, 4096, 65536, 1048576}) {
    const std::vector<double> x =
        rounded(DType::float32, normal(static_cast<std::size_t>(n), 1e4, 1, 7));
    const OwnedTensor in = tensor(DType::float32, {1, n}), out = tensor(DType::float32, {1, n});
    upload(in.tensor(), x);
    auto layer_norm = op(n);
    ASSERT_THAT(layer_norm->forward(stream_, in.tensor(), nullptr, nullptr, out.tensor()), is_ok());
    // The input's own rounding step at 1e4 is 1e-3: what is left of it after the mean is taken off
    // is exact, so the result is as good as float32 arithmetic on values of size 1 to 5.
    const double error = worst(download(out.tensor(), 0, n), normalized(x));
    std::printf("mean 1e4, variance 1, n = %7lld: worst error %.2g\n", static_cast<long long>(n),
                error);
    EXPECT_LT(error, 2e-3) << n;
  }
}

// Outliers where pivots come from: the worst for the variance that there is
// (kernel_sources/norm/README.md, "Tolerance").
TEST_F(LayerNormGpuTest, OutliersAtTheStartStayWithinTheBound) {
  for (const DType dtype : {DType::float32, DType::float16}) {
    const bool wide = dtype == DType::float32;
    const double u = std::ldexp(1, wide ? -24 : -11), k = wide ? 64 : 1024;
    for (std::int64_t n : {256, 1152, 4096, 16384, 32768, 65536, 600008, 1048576}) {
      std::vector<double> x = normal(static_cast<std::size_t>(n), 0, 1, 11);
      for (std::size_t i = 0; i < 8; ++i) x[i] = 3000 * (1 + 0.01 * x[i]);
      x = rounded(dtype, std::move(x));
      const OwnedTensor in = tensor(dtype, {1, n}), out = tensor(dtype, {1, n});
      upload(in.tensor(), x);
      ASSERT_THAT(op(n)->forward(stream_, in.tensor(), nullptr, nullptr, out.tensor()), is_ok());
      const std::vector<double> got = download(out.tensor(), 0, n), want = normalized(x);
      double most = 0;  // of what the rounding of the result leaves, in units of 2^-24 (|h| + 1)
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double rounding = u * std::abs(want[i]) + std::ldexp(1, -25);
        most = std::max(most, (std::abs(got[i] - want[i]) - rounding) * std::ldexp(1, 24) /
                                  (std::abs(want[i]) + 1));
      }
      std::printf("%s, 8 outliers, n = %7lld: %.1f of %.0f\n",
                  std::string(to_string(dtype)).c_str(), static_cast<long long>(n), most, k);
      EXPECT_LE(most, k) << n;
    }
  }
}

TEST_F(LayerNormGpuTest, MoreThanTwoToThe31ElementsAreRightAtBothEnds) {
  const std::int64_t n = 12288, rows = 175000;  // 2,150,400,000 elements, 4.3 GB each way
  const OwnedTensor x = tensor(DType::float16, {rows, n}), y = tensor(DType::float16, {rows, n});
  ASSERT_THAT(
      support_->fill(stream_, x.tensor().data, 0x3c, static_cast<std::size_t>(rows * n * 2)),
      is_ok());
  ASSERT_THAT(
      support_->fill(stream_, y.tensor().data, 0xff, static_cast<std::size_t>(rows * n * 2)),
      is_ok());
  auto layer_norm = op(n);
  const std::vector<std::int64_t> checked = {0, 1, (std::int64_t{1} << 31) / n,
                                             (std::int64_t{1} << 31) / n + 1, rows - 1};
  std::vector<std::vector<double>> want;
  for (std::int64_t row : checked) {
    const auto values = rounded(
        DType::float16, normal(static_cast<std::size_t>(n), 0.5, 1, static_cast<unsigned>(row)));
    upload(Tensor::contiguous(static_cast<char*>(x.tensor().data) + row * n * 2, stream_.device,
                              DType::float16, {n}),
           values);
    want.push_back(normalized(values));
  }
  ASSERT_THAT(layer_norm->forward(stream_, x.tensor(), nullptr, nullptr, y.tensor()), is_ok());
  for (std::size_t i = 0; i < checked.size(); ++i) {
    EXPECT_LT(worst(download(y.tensor(), checked[i] * n, n), want[i]), 4e-3)
        << "row " << checked[i];
  }
  // All other rows are constant, so they are zero everywhere.
  for (std::int64_t row : {std::int64_t{2}, rows / 2, rows - 2}) {
    for (double v : download(y.tensor(), row * n, n)) ASSERT_EQ(v, 0) << row;
  }
}

TEST_F(LayerNormGpuTest, ANanOrAnInfinityStaysInItsRow) {
  for (std::int64_t n : {33, 4096, 65536, 600008}) {
    std::vector<double> x = normal(static_cast<std::size_t>(4 * n), 0, 1, 3);
    x[static_cast<std::size_t>(n + 5)] = std::numeric_limits<double>::quiet_NaN();
    x[static_cast<std::size_t>(2 * n + 7)] = std::numeric_limits<double>::infinity();
    const OwnedTensor in = tensor(DType::float32, {4, n}), out = tensor(DType::float32, {4, n});
    upload(in.tensor(), x);
    ASSERT_THAT(op(n)->forward(stream_, in.tensor(), nullptr, nullptr, out.tensor()), is_ok());
    const std::vector<double> y = download(out.tensor(), 0, 4 * n);
    for (std::int64_t i = 0; i < 4 * n; ++i) {
      const bool bad_row = i / n == 1 || i / n == 2;
      ASSERT_EQ(std::isnan(y[static_cast<std::size_t>(i)]), bad_row) << n << " " << i;
    }
  }
}

TEST_F(LayerNormGpuTest, EveryBatchGivesTheSameBitsAndSoDoesEveryRun) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> batches = {
      {5120, 1},   {5120, 2},    {5120, 3},    {5120, 64},   {5120, 500},
      {8192, 1},   {8192, 32},   {8192, 33},   {8192, 500},  // up to 32 rows by clusters
      {9216, 2},   {9216, 40},   {16384, 1},   {16384, 33},  {16384, 300},
      {11264, 1},  {11264, 40},  // 11 warps, which 8 blocks do not share evenly
      {40000, 1},  {40000, 3},   {40000, 200}, {40000, 200},  // the last from a queue
      {600008, 1}, {600008, 40}, {600008, 40}};  // spread: more rows than a ring has slots
  std::vector<double> first;
  for (const auto& [n, rows] : batches) {
    const std::vector<double> row = normal(static_cast<std::size_t>(n), 1, 2, 9);
    if (first.size() != row.size()) first.clear();
    std::vector<double> x;
    for (std::int64_t r = 0; r < rows; ++r) x.insert(x.end(), row.begin(), row.end());
    const OwnedTensor in = tensor(DType::bfloat16, {rows, n}),
                      out = tensor(DType::bfloat16, {rows, n});
    upload(in.tensor(), x);
    ASSERT_THAT(op(n)->forward(stream_, in.tensor(), nullptr, nullptr, out.tensor()), is_ok());
    const std::vector<double> y = download(out.tensor(), 0, rows * n);
    if (first.empty()) first.assign(y.begin(), y.begin() + n);
    for (std::int64_t r = 0; r < rows; ++r) {
      ASSERT_TRUE(std::equal(first.begin(), first.end(), y.begin() + r * n))
          << n << " " << rows << " " << r;
    }
  }
}

TEST_F(LayerNormGpuTest, AnEmptyBatchRunsNothing) {
  const OwnedTensor x = tensor(DType::float16, {0, 4096}), y = tensor(DType::float16, {0, 4096});
  auto layer_norm = op(4096);
  EXPECT_THAT(layer_norm->forward(stream_, x.tensor(), nullptr, nullptr, y.tensor()), is_ok());
  EXPECT_EQ(layer_norm->iter_kernels().size(), 0u);
}

TEST_F(LayerNormGpuTest, ASecondProcessCompilesNothing) {
  const OwnedTensor x = tensor(DType::float16, {8, 4096}), y = tensor(DType::float16, {8, 4096});
  ASSERT_THAT(op(4096)->forward(stream_, x.tensor(), nullptr, nullptr, y.tensor()), is_ok());
  EXPECT_EQ(runtime_->stats().compilations, 1);
  // Another runtime on the same folder has nothing in memory, as a new process has not.
  Runtime other(runtime_->options());
  OpOptions options;
  options.runtime = &other;
  auto again = LayerNormFwdOp::create({.normalized_shape = {4096}}, options);
  ASSERT_THAT(again, is_ok());
  ASSERT_THAT((*again)->forward(stream_, x.tensor(), nullptr, nullptr, y.tensor()), is_ok());
  ASSERT_THAT(support_->synchronize(stream_), is_ok());
  EXPECT_EQ(other.stats().compilations, 0);
  EXPECT_EQ(other.stats().disk_hits, 1);
}

TEST_F(LayerNormGpuTest, AHitRunsFromAFreshThread) {
  const OwnedTensor x = tensor(DType::float16, {8, 4096}), y = tensor(DType::float16, {8, 4096});
  auto layer_norm = op(4096);
  ASSERT_THAT(layer_norm->forward(stream_, x.tensor(), nullptr, nullptr, y.tensor()), is_ok());
  absl::Status status;
  std::thread([&] {
    status = layer_norm->forward(stream_, x.tensor(), nullptr, nullptr, y.tensor());
  }).join();
  EXPECT_THAT(status, is_ok());
  EXPECT_THAT(support_->synchronize(stream_), is_ok());
  EXPECT_EQ(runtime_->stats().selections, 1);
}

TEST_F(LayerNormGpuTest, BadInputIsAStatusThatNamesTheValue) {
  const OwnedTensor x = tensor(DType::float16, {8, 4096}), y = tensor(DType::float16, {8, 4096});
  const OwnedTensor w = tensor(DType::float32, {4096});
  auto layer_norm = op(4096);
  using enum absl::StatusCode;
  EXPECT_THAT(layer_norm->forward(stream_, x.tensor(), &w.tensor(), nullptr, y.tensor()),
              status_is(kInvalidArgument, HasSubstr("float32")));
  Tensor host = x.tensor();
  host.device = Device{DeviceType::cpu(), 0};
  EXPECT_THAT(layer_norm->forward(stream_, host, nullptr, nullptr, y.tensor()),
              status_is(kInvalidArgument, HasSubstr("cpu:0")));
  Tensor null = x.tensor();
  null.data = nullptr;
  EXPECT_THAT(layer_norm->forward(stream_, null, nullptr, nullptr, y.tensor()),
              status_is(kInvalidArgument, HasSubstr("null")));
  Tensor gaps = y.tensor();
  gaps.strides = {8192, 1};
  EXPECT_THAT(layer_norm->forward(stream_, x.tensor(), nullptr, nullptr, gaps),
              status_is(kInvalidArgument, HasSubstr("[8192, 1]")));
}

}  // namespace
}  // namespace kiln::testing
