// Batch norm's hard cases on the device, by every implementation that serves them, against the
// reference in double.
#include <kiln/kiln.h>
#include <kiln/ops/batch_norm.h>

#include "runtime/dtype_convert.h"
#include "tests/support/gpu.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kiln::testing {
namespace {

using Values = std::vector<double>;

// What a training call gives, as the device or as the reference computes it.
struct Trained {
  Values y, mean, rstd, running_mean, running_var;
};

class BatchNormGpuTest : public ::testing::Test {
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

  OwnedTensor upload(DType dtype, const Dims& shape, const Values& values) {
    auto owned = OwnedTensor::allocate(*support_, stream_, dtype, shape);
    EXPECT_THAT(owned, is_ok());
    std::vector<char> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
    internal::store_elements(dtype, bytes.data(), values.data(), values.size());
    EXPECT_THAT(support_->copy_to_device(stream_, owned->tensor().data, bytes.data(), bytes.size()),
                is_ok());
    EXPECT_THAT(support_->synchronize(stream_), is_ok());
    return *std::move(owned);
  }
  Values download(const OwnedTensor& from) {
    const Tensor& t = from.tensor();
    const auto count = static_cast<std::size_t>(t.elements());
    std::vector<char> bytes(count * static_cast<std::size_t>(size_of(t.dtype)));
    EXPECT_THAT(support_->copy_to_host(stream_, bytes.data(), t.data, bytes.size()), is_ok());
    EXPECT_THAT(support_->synchronize(stream_), is_ok());
    Values values(count);
    internal::load_elements(t.dtype, values.data(), bytes.data(), count);
    return values;
  }
  // Values as the dtype holds them.
  static Values rounded(DType dtype, Values values) {
    for (double& v : values) {
      char element[8];
      internal::store_element(dtype, element, v);
      v = internal::load_element(dtype, element);
    }
    return values;
  }

  // Trains once by implementation `key`, from running statistics (0, 1) with momentum 0.25.
  Trained train(const std::string& key, DType dtype, const Dims& shape, const Values& x) {
    auto op = BatchNormFwdOp::create({.training = true, .momentum = 0.25},
                                     {.runtime = runtime_.get(), .only = {key}});
    EXPECT_THAT(op, is_ok());
    const auto c = static_cast<std::size_t>(shape[1]);
    const Dims channels{shape[1]};
    const OwnedTensor in = upload(dtype, shape, x), y = upload(dtype, shape, Values(x.size(), 99));
    const OwnedTensor mean = upload(DType::float32, channels, Values(c, 99)),
                      rstd = upload(DType::float32, channels, Values(c, 99)),
                      running_mean = upload(DType::float32, channels, Values(c, 0)),
                      running_var = upload(DType::float32, channels, Values(c, 1));
    EXPECT_THAT((*op)->forward(stream_, in.tensor(), &running_mean.tensor(), &running_var.tensor(),
                               nullptr, nullptr, y.tensor(), &mean.tensor(), &rstd.tensor()),
                is_ok());
    return {download(y), download(mean), download(rstd), download(running_mean),
            download(running_var)};
  }
  Trained reference(const Dims& shape, Values x) {
    const auto c = static_cast<std::size_t>(shape[1]);
    Trained t{Values(x.size()), Values(c), Values(c), Values(c, 0), Values(c, 1)};
    const Dims channels{shape[1]};
    const HostTensor inputs[] = {{shape, x.data()},
                                 {channels, t.running_mean.data()},
                                 {channels, t.running_var.data()},
                                 {},
                                 {}};
    const HostTensor outputs[] = {
        {shape, t.y.data()}, {channels, t.mean.data()}, {channels, t.rstd.data()}};
    const ParamValues params = {{"training", true}, {"momentum", 0.25}, {"eps", 1e-5}};
    EXPECT_THAT((*runtime_->reference("BatchNormFwdOp"))(params, {}, inputs, outputs), is_ok());
    return t;
  }

  static double worst(const Values& got, const Values& want) {
    double most = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double error = std::abs(got[i] - want[i]);
      most = std::isfinite(error) ? std::max(most, error) : std::numeric_limits<double>::infinity();
    }
    return most;
  }
  // y's errors beyond its one rounding, and the statistics' relative ones.
  void expect_right(const Trained& got, const Trained& want, double y_error, double relative) {
    EXPECT_LE(worst(got.y, want.y), y_error);
    for (const auto& [a, b] : {std::pair{&got.mean, &want.mean},
                               {&got.rstd, &want.rstd},
                               {&got.running_mean, &want.running_mean},
                               {&got.running_var, &want.running_var}}) {
      for (std::size_t i = 0; i < a->size(); ++i)
        EXPECT_NEAR((*a)[i], (*b)[i], relative * std::abs((*b)[i]) + 1e-6);
    }
  }
  static Values normal(std::size_t count, double mean, double deviation) {
    std::mt19937 random(7);
    std::normal_distribution<double> draw(mean, deviation);
    Values values(count);
    for (double& v : values) v = draw(random);
    return values;
  }

  TempDir folder_;
  std::unique_ptr<Runtime> runtime_;
  DeviceSupport* support_ = nullptr;
  Stream stream_;
};

// An implementation with a shape that it serves, whose last channel ends in a part.
struct Served {
  const char* key;
  Dims shape;
};
const std::vector<Served> kServed = {{"fwd_train_whole", {31, 5}},
                                     {"fwd_train_wide", {2, 5, 1000}},
                                     {"fwd_train_split", {3, 5, 40004}},
                                     {"fwd_train_kernel", {3, 5, 40004}}};

TEST_F(BatchNormGpuTest, AMeanFarFromZeroCostsNoDigits) {
  for (const Served& s : kServed) {
    SCOPED_TRACE(s.key);
    const auto count = static_cast<std::size_t>(numel(s.shape));
    for (const double mean : {5.0, -5.0, 1e4}) {
      const Values x = rounded(DType::float32, normal(count, mean, std::abs(mean) > 10 ? 1 : 0.1));
      expect_right(train(s.key, DType::float32, s.shape, x), reference(s.shape, x), 2e-5, 1e-5);
    }
    const Values x = rounded(DType::bfloat16, normal(count, 5, 0.1));
    expect_right(train(s.key, DType::bfloat16, s.shape, x), reference(s.shape, x), 0.02, 1e-5);
  }
}

TEST_F(BatchNormGpuTest, AConstantBecomesZero) {
  for (const Served& s : kServed) {
    SCOPED_TRACE(s.key);
    const Values x(static_cast<std::size_t>(numel(s.shape)), 1e7);
    const Trained got = train(s.key, DType::float32, s.shape, x);
    EXPECT_LE(worst(got.y, Values(x.size(), 0)), 1e-3);
    EXPECT_EQ(got.mean, Values(5, 1e7));
    for (double v : got.running_var) EXPECT_NEAR(v, 0.75, 1e-6);
  }
}

// Items of one channel with means far apart: parts that disagree put together.
TEST_F(BatchNormGpuTest, PartsThatLieFarApartAreMergedRight) {
  for (const Served& s : kServed) {
    SCOPED_TRACE(s.key);
    Values x = normal(static_cast<std::size_t>(numel(s.shape)), 0, 1);
    for (std::size_t i = x.size() / 2; i < x.size(); ++i) x[i] += 1000;
    x = rounded(DType::float32, std::move(x));
    expect_right(train(s.key, DType::float32, s.shape, x), reference(s.shape, x), 2e-5, 2e-5);
  }
}

TEST_F(BatchNormGpuTest, NanAndInfinityStayInTheirChannel) {
  for (const Served& s : kServed) {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      SCOPED_TRACE(s.key);
      Values x = normal(static_cast<std::size_t>(numel(s.shape)), 0, 1);
      const std::size_t spatial = s.shape.size() > 2 ? static_cast<std::size_t>(s.shape[2]) : 1;
      x[2 * spatial] = bad;  // channel 2 of the first item
      const Trained got = train(s.key, DType::float32, s.shape, x);
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(std::isnan(got.y[i]), i / spatial % 5 == 2) << i;
    }
  }
}

TEST_F(BatchNormGpuTest, ResultsRepeatBitForBit) {
  for (const Served& s : kServed) {
    SCOPED_TRACE(s.key);
    const Values x = normal(static_cast<std::size_t>(numel(s.shape)), 1, 2);
    const Trained first = train(s.key, DType::float16, s.shape, x);
    for (int i = 0; i < 5; ++i) {
      const Trained again = train(s.key, DType::float16, s.shape, x);
      EXPECT_EQ(again.y, first.y);
      EXPECT_EQ(again.mean, first.mean);
      EXPECT_EQ(again.running_var, first.running_var);
    }
  }
}

TEST_F(BatchNormGpuTest, AnEmptyBatchLeavesTheRunningStatisticsAlone) {
  const Trained got = train("fwd_train_kernel", DType::float16, {0, 5, 7}, {});
  EXPECT_EQ(got.running_mean, Values(5, 0));
  EXPECT_EQ(got.running_var, Values(5, 1));
  for (double v : got.mean) EXPECT_TRUE(std::isnan(v));
  for (double v : got.rstd) EXPECT_TRUE(std::isnan(v));
}

}  // namespace
}  // namespace kiln::testing
