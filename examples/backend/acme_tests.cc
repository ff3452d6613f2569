// The plugin as Kiln loads it: KILN_BACKEND_PATH names it, or it lies in Kiln's folder of plugins.
#include <kiln/ops/layer_norm.h>
#include <kiln/runtime.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

using kiln::DType;
using kiln::LayerNormFwdOp;
using kiln::Runtime;
using kiln::Tensor;

// Rows 1 2 3 4 and 2 4 6 8: the same row once normalized.
struct Call {
  explicit Call(kiln::DeviceType type) : device{type, 0} {}
  Tensor tensor(std::vector<float>& values, const kiln::Dims& shape) const {
    return Tensor::contiguous(values.data(), device, DType::float32, shape);
  }
  absl::Status run(LayerNormFwdOp& op) {
    const Tensor w = tensor(weight, {4}), b = tensor(bias, {4});
    return op.forward({device, nullptr}, tensor(x, {2, 4}), &w, &b, tensor(y, {2, 4}));
  }
  void expect_normalized() const {
    const double rstd = 1 / std::sqrt(1.25);
    for (std::size_t i = 0; i < 8; ++i) {
      const double h = (static_cast<double>(i % 4) - 1.5) * rstd;
      EXPECT_NEAR(y[i], h * weight[i % 4] + bias[i % 4], 1e-4) << i;
    }
  }
  kiln::Device device;
  std::vector<float> x{1, 2, 3, 4, 2, 4, 6, 8}, weight{1, 2, 3, 4}, bias{5, 6, 7, 8};
  std::vector<float> y = std::vector<float>(8);
};

TEST(AcmeBackend, IsLoaded) {
  Runtime& runtime = Runtime::instance();
  runtime.load_backends();
  for (const kiln::LoadFailure& failure : runtime.load_failures())
    ADD_FAILURE() << failure.file << ": " << failure.reason;
  const std::vector<std::string> targets = runtime.registered_targets();
  EXPECT_EQ(std::count(targets.begin(), targets.end(), "acme"), 1);
}

TEST(AcmeBackend, ItsDeviceIsServedByItsTarget) {
  Runtime::instance().load_backends();
  Call call(*kiln::DeviceType::named("acme"));
  auto op = LayerNormFwdOp::create({.normalized_shape = {4}});
  ASSERT_TRUE(op.ok()) << op.status();
  const absl::Status status = call.run(**op);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ((*op)->serving_target(), "acme");
  call.expect_normalized();
}

TEST(AcmeBackend, WhatTheTargetDoesNotServeIsRefusedWithAReason) {
  Runtime::instance().load_backends();
  const kiln::Device device{*kiln::DeviceType::named("acme"), 0};
  std::vector<std::uint16_t> x(8), y(8);
  auto op = LayerNormFwdOp::create({.normalized_shape = {4}});
  ASSERT_TRUE(op.ok()) << op.status();
  const absl::Status status = (*op)->forward(
      {device, nullptr}, Tensor::contiguous(x.data(), device, DType::float16, {2, 4}), nullptr,
      nullptr, Tensor::contiguous(y.data(), device, DType::float16, {2, 4}));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(kiln::message_of(status).find("x must be float32"), std::string::npos) << status;
}

TEST(AcmeBackend, ItsImplementationServesShortRowsOnTheCpu) {
  Call call(kiln::DeviceType::cpu());
  auto op = LayerNormFwdOp::create({.normalized_shape = {4}}, {.record_calls = true});
  ASSERT_TRUE(op.ok()) << op.status();
  const absl::Status status = call.run(**op);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ((*op)->last_call()->keys, std::vector<std::string>{"acme_host_layer_norm"});
  call.expect_normalized();
}

}  // namespace
