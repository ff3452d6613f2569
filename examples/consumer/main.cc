// The smallest program on Kiln: one op, one call on the CPU, checked by hand.
#include <kiln/kiln.h>
#include <kiln/ops/layer_norm.h>

#include <cmath>
#include <cstdio>

namespace {

absl::Status run() {
  auto op = kiln::LayerNormFwdOp::create({.normalized_shape = {4}, .eps = 0});
  if (!op.ok()) return op.status();
  const kiln::Device cpu{kiln::DeviceType::cpu(), 0};
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  const absl::Status called = (*op)->forward(
      kiln::Stream{cpu, nullptr}, kiln::Tensor::contiguous(x, cpu, kiln::DType::float32, {1, 4}),
      nullptr, nullptr, kiln::Tensor::contiguous(y, cpu, kiln::DType::float32, {1, 4}));
  if (!called.ok()) return called;
  std::printf("%.4f %.4f %.4f %.4f\n", static_cast<double>(y[0]), static_cast<double>(y[1]),
              static_cast<double>(y[2]), static_cast<double>(y[3]));
  const bool is_right = std::fabs(y[0] + 1.3416F) < 1e-3F && std::fabs(y[3] - 1.3416F) < 1e-3F;
  return is_right ? absl::OkStatus() : absl::InternalError("the result is wrong");
}

}  // namespace

int main() {
  const absl::Status status = run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", kiln::message_of(status).c_str());
  return status.ok() ? 0 : 1;
}
