#include "backends/cpu/cpu_layer_norm.h"

#include "backends/cpu/cpu_layer_norm_short.h"
#include "cache/store.h"
#include "jit/engine.h"
#include "tests/backends/cpu_fixture.h"
#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace kiln {
namespace {

using cpu::CpuLayerNormKernel;
using cpu::CpuLayerNormShortKernel;
using testing::is_ok;
using testing::kCpuStream;

// Conversions of the test's own, in double.
double decode(DType dtype, const std::byte* p) {
  if (dtype == DType::float32) {
    float v;
    std::memcpy(&v, p, 4);
    return v;
  }
  std::uint16_t bits;
  std::memcpy(&bits, p, 2);
  if (dtype == DType::bfloat16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

// Spacing of the dtype's numbers at |v|.
double step_at(DType dtype, double v) {
  const int digits = dtype == DType::float32 ? 24 : dtype == DType::float16 ? 11 : 8;
  const int smallest = dtype == DType::float16 ? -14 : -126;
  return std::ldexp(1.0,
                    std::max(std::ilogb(std::max(std::fabs(v), 1e-300)), smallest) - digits + 1);
}

// Truncates towards zero: the inputs are what they are, nobody compares this rounding.
void encode(DType dtype, double v, std::byte* p) {
  if (dtype == DType::float32) {
    const float f = static_cast<float>(v);
    std::memcpy(p, &f, 4);
    return;
  }
  std::uint16_t bits = 0;
  if (dtype == DType::bfloat16) {
    bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(v)) >> 16);
    if (std::isnan(v)) bits = 0x7fc0;
  } else if (!std::isfinite(v)) {
    bits = std::isnan(v) ? 0x7e01 : v < 0 ? 0xfc00 : 0x7c00;
  } else if (v != 0) {
    const int exponent = std::max(std::ilogb(v), -14);
    const int fraction = static_cast<int>(std::ldexp(std::fabs(v), 10 - exponent));
    bits = static_cast<std::uint16_t>((fraction + (fraction >= 1024 ? (exponent + 14) << 10 : 0)) |
                                      (v < 0 ? 0x8000 : 0));
  }
  std::memcpy(p, &bits, 2);
}

// An array of elements at an address that is `offset` bytes off a 64-byte boundary.
class Array {
 public:
  Array(DType dtype, std::int64_t count, int offset)
      : dtype_(dtype), bytes_(static_cast<std::size_t>(count * size_of(dtype)) + 128) {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data());
    start_ = bytes_.data() + ((at + 63) / 64 * 64 - at) + offset;
  }
  double get(std::int64_t i) const { return decode(dtype_, start_ + i * size_of(dtype_)); }
  void set(std::int64_t i, double v) { encode(dtype_, v, start_ + i * size_of(dtype_)); }
  std::byte* data() { return start_; }

 private:
  DType dtype_;
  std::vector<std::byte> bytes_;
  std::byte* start_;
};

struct Case {
  DType dtype = DType::float32;
  std::int64_t n = 0;
  std::int64_t rows = 5;
  std::int64_t gap = 0;  // elements between rows
  int offset = 0;        // bytes
  double mean = 0;
  bool has_weight = true, has_bias = true;
  std::string text() const {
    return std::string(to_string(dtype)) + " n=" + std::to_string(n) +
           " rows=" + std::to_string(rows) + " gap=" + std::to_string(gap) +
           " offset=" + std::to_string(offset) + " mean=" + std::to_string(mean);
  }
};

// Compiles, through the engine and so with its memory tier, and loads what a kernel wants; runs it;
// compares.
class CpuLayerNormTest : public ::testing::Test {
 protected:
  static constexpr double kEps = 1e-5;

  void SetUp() override {
    SourceTable table;
    add_sources_kiln_cpu_objects(table);
    ASSERT_THAT(sources_.add(table), is_ok());
  }

  void make_ready(Kernel& kernel, const Config& config) {
    auto loaded = std::make_unique<Loaded>();
    loaded->config = config;
    loaded->facts = *support_.facts(0);
    loaded->support = &support_;
    for (const Program& program : kernel.programs(loaded->facts, config)) {
      const auto built =
          engine_.build(support_.compiler(), program, *support_.target_for(loaded->facts, false));
      ASSERT_THAT(built, is_ok());
      auto image = support_.load(0, built->artifact->kind, built->artifact->image, program.kernels);
      ASSERT_THAT(image, is_ok());
      for (void* function : (*image)->functions()) loaded->functions.push_back(function);
      loaded->images.push_back(*std::move(image));
    }
    kernel.publish(0, std::move(loaded));
  }

  template <class K>
  std::unique_ptr<K> ready(const LayerNormCall& call, const Config* config = nullptr) {
    std::unique_ptr<K> kernel = K::entry_for(call).build();
    make_ready(*kernel, config != nullptr ? *config : kernel->default_config(*support_.facts(0)));
    return kernel;
  }

  static LayerNormCall call_of(const Case& c) {
    return {.n = c.n,
            .eps = kEps,
            .dtype = c.dtype,
            .has_weight = c.has_weight,
            .has_bias = c.has_bias};
  }

  // The largest error against double, in rounding steps.
  template <class K>
  double worst(const Case& c, const Config* config = nullptr) {
    const std::unique_ptr<K> kernel = ready<K>(call_of(c), config);
    const std::int64_t stride = c.n + c.gap;
    Array x(c.dtype, c.rows * stride, c.offset), w(c.dtype, c.n, c.offset),
        b(c.dtype, c.n, c.offset);
    Array y(c.dtype, c.rows * c.n, c.offset);
    std::mt19937 random(static_cast<unsigned>(c.n));
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < c.rows * stride; ++i) x.set(i, c.mean + normal(random));
    for (std::int64_t i = 0; i < c.n; ++i)
      w.set(i, 1 + 0.25 * normal(random)), b.set(i, normal(random));
    run(*kernel, c, x, w, b, y);
    std::vector<double> want(static_cast<std::size_t>(c.rows * c.n));
    double largest = 0;
    for (std::int64_t row = 0; row < c.rows; ++row) {
      double mean = 0, var = 0;
      for (std::int64_t i = 0; i < c.n; ++i)
        mean += x.get(row * stride + i) / static_cast<double>(c.n);
      for (std::int64_t i = 0; i < c.n; ++i)
        var += std::pow(x.get(row * stride + i) - mean, 2) / static_cast<double>(c.n);
      for (std::int64_t i = 0; i < c.n; ++i) {
        double& v = want[static_cast<std::size_t>(row * c.n + i)];
        v = (x.get(row * stride + i) - mean) / std::sqrt(var + kEps);
        if (c.has_weight) v *= w.get(i);
        if (c.has_bias) v += b.get(i);
        largest = std::max(largest, std::fabs(v));
      }
    }
    double result = 0;
    for (std::int64_t i = 0; i < c.rows * c.n; ++i) {
      const double v = want[static_cast<std::size_t>(i)];
      const double error = std::fabs(y.get(i) - v);
      if (std::isnan(error)) return HUGE_VAL;
      // A step at the value and one at the size of the whole: x - mean cancels.
      if (error > 0)
        result = std::max(result, error / (step_at(c.dtype, v) + step_at(c.dtype, largest)));
    }
    return result;
  }

  static void run(const LayerNormFwdInterface& kernel, const Case& c, Array& x, Array& w, Array& b,
                  Array& y) {
    const Device cpu{DeviceType::cpu(), 0};
    Tensor tx = Tensor::contiguous(x.data(), cpu, c.dtype, {c.rows, c.n});
    tx.strides = {c.n + c.gap, 1};
    const Tensor tw = Tensor::contiguous(c.has_weight ? w.data() : nullptr, cpu, c.dtype, {c.n});
    const Tensor tb = Tensor::contiguous(c.has_bias ? b.data() : nullptr, cpu, c.dtype, {c.n});
    const Tensor ty = Tensor::contiguous(y.data(), cpu, c.dtype, {c.rows, c.n});
    ASSERT_THAT(kernel.forward(kCpuStream, tx, tw, tb, ty, nullptr), is_ok());
  }

  cpu::CpuSupport support_;
  jit::Sources sources_;
  std::unique_ptr<cache::Store> store_ = cache::make_store({});
  jit::Engine engine_{sources_, *store_};
};

// What the op allows.
const double kSteps = LayerNormFwdOp::signature().tolerance_steps;
constexpr DType kDTypes[] = {DType::float16, DType::bfloat16, DType::float32};

TEST_F(CpuLayerNormTest, AgreesWithDoubleForEveryLength) {
  for (const DType dtype : kDTypes) {
    for (const std::int64_t n : {1, 7, 31, 32, 33, 64, 1000, 4096, 4097, 5120, 65536}) {
      for (const Case& c : {Case{.dtype = dtype, .n = n}, Case{.dtype = dtype, .n = n, .gap = 3},
                            Case{.dtype = dtype, .n = n, .offset = size_of(dtype)},
                            Case{.dtype = dtype, .n = n, .gap = 8, .offset = 1}}) {
        EXPECT_LT(worst<CpuLayerNormKernel>(c), kSteps) << c.text();
        if (n <= CpuLayerNormShortKernel::kMaxN) {
          EXPECT_LT(worst<CpuLayerNormShortKernel>(c), kSteps) << c.text();
        }
      }
    }
  }
  // One binary a dtype, and one more for each length of the short kernel.
  EXPECT_EQ(engine_.stats().compilations, 3 + 3 * 6);
}

TEST_F(CpuLayerNormTest, ALargeMeanCostsNoAccuracy) {
  for (const std::int64_t n : {33, 1000, 65536}) {
    const Case c{.dtype = DType::float32, .n = n, .mean = 1e4};
    EXPECT_LT(worst<CpuLayerNormKernel>(c), kSteps) << c.text();
  }
  EXPECT_LT(worst<CpuLayerNormShortKernel>({.dtype = DType::float32, .n = 33, .mean = 1e4}),
            kSteps);
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const Case c{.dtype = dtype, .n = 5120, .mean = 100};
    EXPECT_LT(worst<CpuLayerNormKernel>(c), kSteps) << c.text();
  }
}

TEST_F(CpuLayerNormTest, WeightAndBiasAreOptional) {
  for (const DType dtype : kDTypes) {
    for (const std::int64_t n : {31, 1000}) {
      for (const bool weight : {false, true}) {
        const Case c{.dtype = dtype, .n = n, .has_weight = weight, .has_bias = !weight && n == 31};
        EXPECT_LT(worst<CpuLayerNormKernel>(c), kSteps) << c.text();
        if (n == 31) {
          EXPECT_LT(worst<CpuLayerNormShortKernel>(c), kSteps) << c.text();
        }
      }
    }
  }
}

TEST_F(CpuLayerNormTest, EveryConfigurationIsRight) {
  const Case c{.dtype = DType::float16, .n = 1000, .rows = 300};
  const DeviceFacts facts = *support_.facts(0);
  const auto kernel = CpuLayerNormKernel::entry_for(call_of(c)).build();
  const std::vector<Config> configs = kernel->autotune_configs(facts);
  EXPECT_THAT(configs, ::testing::Contains(kernel->default_config(facts)));
  for (const Config& config : configs)
    EXPECT_LT(worst<CpuLayerNormKernel>(c, &config), kSteps) << to_string(config);
}

TEST_F(CpuLayerNormTest, ARowIsTheSameInEveryBatchAndInPlace) {
  const Case one{.dtype = DType::float32, .n = 777, .rows = 1};
  const Case many{.dtype = DType::float32, .n = 777, .rows = 501};
  const auto kernel = ready<CpuLayerNormKernel>(call_of(many));
  Array x(many.dtype, many.n * many.rows, 0), w(many.dtype, many.n, 0), b(many.dtype, many.n, 0);
  Array y(many.dtype, many.n * many.rows, 0), z(many.dtype, many.n, 0);
  for (std::int64_t i = 0; i < many.n * many.rows; ++i)
    x.set(i, std::sin(static_cast<double>(i % many.n)) * 3);
  for (std::int64_t i = 0; i < many.n; ++i) w.set(i, 1.5), b.set(i, 0.25);
  run(*kernel, many, x, w, b, y);
  run(*kernel, one, x, w, b, z);
  for (std::int64_t i = 0; i < many.n * many.rows; ++i) ASSERT_EQ(y.get(i), z.get(i % many.n)) << i;
  run(*kernel, many, x, w, b, x);
  for (std::int64_t i = 0; i < many.n * many.rows; ++i) ASSERT_EQ(x.get(i), y.get(i)) << i;
}

TEST_F(CpuLayerNormTest, NanAndInfinitySpoilTheirRowAlone) {
  for (const DType dtype : kDTypes) {
    for (const std::int64_t n : {33, 1000, 5000}) {
      const Case c{.dtype = dtype, .n = n, .rows = 4};
      Array x(dtype, n * 4, 0), w(dtype, n, 0), b(dtype, n, 0), y(dtype, n * 4, 0);
      const auto check = [&](const LayerNormFwdInterface& kernel) {
        run(kernel, c, x, w, b, y);
        for (std::int64_t i = 0; i < 4 * n; ++i) {
          const bool spoilt = i / n == 1 || i / n == 2;
          ASSERT_EQ(std::isnan(y.get(i)), spoilt) << c.text() << " element " << i;
        }
      };
      for (std::int64_t i = 0; i < 4 * n; ++i) x.set(i, static_cast<double>(i % 5));
      for (std::int64_t i = 0; i < n; ++i) w.set(i, 1), b.set(i, 1);
      x.set(n + n - 1, std::numeric_limits<double>::quiet_NaN());
      x.set(2 * n + 2, -HUGE_VAL);
      check(*ready<CpuLayerNormKernel>(call_of(c)));
      if (n <= CpuLayerNormShortKernel::kMaxN) check(*ready<CpuLayerNormShortKernel>(call_of(c)));
    }
  }
}

// The identity holds the facts that change the binary, and no other.
TEST(CpuLayerNormIdentityTest, HoldsWhatIsBuiltIn) {
  const LayerNormCall call{.n = 48};
  const auto general = [](const LayerNormCall& c) {
    return CpuLayerNormKernel::entry_for(c).identity().hash();
  };
  const auto brief = [](const LayerNormCall& c) {
    return CpuLayerNormShortKernel::entry_for(c).identity().hash();
  };
  const auto with = [&](auto change) {
    LayerNormCall changed = call;
    change(changed);
    return changed;
  };
  for (const LayerNormCall& other :
       {with([](auto& c) { c.eps = 1e-6; }), with([](auto& c) { c.dtype = DType::float32; }),
        with([](auto& c) { c.has_weight = false; }), with([](auto& c) { c.has_bias = false; })}) {
    EXPECT_NE(general(other), general(call)) << to_string(CallRef(other));
    EXPECT_NE(brief(other), brief(call)) << to_string(CallRef(other));
  }
  for (const LayerNormCall& other :
       {with([](auto& c) { c.align = 2; }), with([](auto& c) { c.strided = true; })}) {
    EXPECT_EQ(general(other), general(call)) << to_string(CallRef(other));
    EXPECT_EQ(brief(other), brief(call)) << to_string(CallRef(other));
  }
  EXPECT_EQ(general(with([](auto& c) { c.n = 49; })), general(call));
  EXPECT_NE(brief(with([](auto& c) { c.n = 49; })), brief(call));
}

TEST(CpuLayerNormRefusalTest, SaysWhy) {
  EXPECT_FALSE(CpuLayerNormKernel::refusal({.n = 1 << 20}));
  EXPECT_FALSE(CpuLayerNormShortKernel::refusal({.n = 64}));
  EXPECT_THAT(CpuLayerNormShortKernel::refusal({.n = 65}).value_or(""),
              ::testing::HasSubstr("got 65"));
  EXPECT_THAT(CpuLayerNormKernel::refusal({.n = 8, .dtype = DType::int8}).value_or(""),
              ::testing::HasSubstr("got int8"));
  EXPECT_TRUE(CpuLayerNormShortKernel::refusal({.n = 8, .dtype = DType::int8}));
  EXPECT_TRUE(CpuLayerNormKernel::refusal({.n = 0}));
  EXPECT_TRUE(CpuLayerNormKernel::refusal({.n = 8, .eps = HUGE_VAL}));
}

}  // namespace
}  // namespace kiln
