#include "batch_norm_reference.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

namespace kiln {
namespace {

double number(const ParamValues& params, const char* name) {
  return std::get<double>(*find_param(params, name));
}
bool flag(const ParamValues& params, const char* name) {
  return std::get<bool>(*find_param(params, name));
}
double at_or(const HostTensor& tensor, std::int64_t i, double otherwise) {
  return tensor.data == nullptr ? otherwise : tensor.data[i];
}

// x [B, C, S].
struct Extents {
  std::int64_t batch, channels, spatial;
  explicit Extents(const HostTensor& x) : batch(x.shape[0]), channels(x.shape[1]), spatial(1) {
    for (int i = 2; i < x.shape.size(); ++i) spatial *= x.shape[i];
  }
  std::int64_t start(std::int64_t b, std::int64_t c) const { return (b * channels + c) * spatial; }
};

struct MeanVar {
  double mean, var;
  double unbiased(std::int64_t n) const {
    return var * static_cast<double>(n) / static_cast<double>(n - 1);
  }
};

// Of batch items [b0, b1) and channels [c0, c1), in two passes.
MeanVar mean_var(const double* x, const Extents& e, std::int64_t b0, std::int64_t b1,
                 std::int64_t c0, std::int64_t c1) {
  const auto n = static_cast<double>((b1 - b0) * (c1 - c0) * e.spatial);
  auto sum = [&](auto f) {
    double total = 0;
    for (std::int64_t b = b0; b < b1; ++b) {
      const double* p = x + e.start(b, c0);
      for (std::int64_t i = 0; i < (c1 - c0) * e.spatial; ++i) total += f(p[i]);
    }
    return total;
  };
  const double mean = sum([](double v) { return v; }) / n;
  return {mean, sum([&](double v) { return (v - mean) * (v - mean); }) / n};
}

void normalize(const double* x, double* y, std::int64_t n, const MeanVar& s, double eps,
               double weight, double bias) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - s.mean) / std::sqrt(s.var + eps) * weight + bias;
}

void move_running(std::span<const HostTensor> inputs, std::int64_t c, double momentum, double mean,
                  double var) {
  if (inputs[1].data == nullptr) return;
  inputs[1].data[c] = (1 - momentum) * inputs[1].data[c] + momentum * mean;
  inputs[2].data[c] = (1 - momentum) * inputs[2].data[c] + momentum * var;
}

}  // namespace

absl::Status batch_norm_reference(const ParamValues& params, const ParamValues&,
                                  std::span<const HostTensor> inputs,
                                  std::span<const HostTensor> outputs) {
  const Extents e(inputs[0]);
  const double eps = number(params, "eps"), momentum = number(params, "momentum");
  const bool training = flag(params, "training");
  const std::int64_t n = e.batch * e.spatial;
  for (std::int64_t c = 0; c < e.channels; ++c) {
    MeanVar s{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    if (!training) {
      s = {inputs[1].data[c], inputs[2].data[c]};
    } else if (n > 0) {
      s = mean_var(inputs[0].data, e, 0, e.batch, c, c + 1);
      move_running(inputs, c, momentum, s.mean, s.unbiased(n));
    }
    if (training && outputs[1].data != nullptr) outputs[1].data[c] = s.mean;
    if (training && outputs[2].data != nullptr) outputs[2].data[c] = 1 / std::sqrt(s.var + eps);
    for (std::int64_t b = 0; b < e.batch; ++b) {
      normalize(inputs[0].data + e.start(b, c), outputs[0].data + e.start(b, c), e.spatial, s, eps,
                at_or(inputs[3], c, 1), at_or(inputs[4], c, 0));
    }
  }
  return absl::OkStatus();
}

absl::Status instance_norm_reference(const ParamValues& params, const ParamValues&,
                                     std::span<const HostTensor> inputs,
                                     std::span<const HostTensor> outputs) {
  const Extents e(inputs[0]);
  if (e.batch * e.channels * e.spatial == 0) return absl::OkStatus();
  const double eps = number(params, "eps"), momentum = number(params, "momentum");
  const bool own = flag(params, "use_input_stats");
  for (std::int64_t c = 0; c < e.channels; ++c) {
    double means = 0, vars = 0;
    for (std::int64_t b = 0; b < e.batch; ++b) {
      // Running statistics are read in x's dtype, as the operator's definition has it.
      const auto running = [&](int input) {
        return round_to(inputs[0].dtype, inputs[input].data[c]);
      };
      const MeanVar s =
          own ? mean_var(inputs[0].data, e, b, b + 1, c, c + 1) : MeanVar{running(1), running(2)};
      means += s.mean;
      vars += s.unbiased(e.spatial);
      normalize(inputs[0].data + e.start(b, c), outputs[0].data + e.start(b, c), e.spatial, s, eps,
                at_or(inputs[3], c, 1), at_or(inputs[4], c, 0));
    }
    const auto items = static_cast<double>(e.batch);
    if (own) move_running(inputs, c, momentum, means / items, vars / items);
  }
  return absl::OkStatus();
}

absl::Status group_norm_reference(const ParamValues& params, const ParamValues&,
                                  std::span<const HostTensor> inputs,
                                  std::span<const HostTensor> outputs) {
  const Extents e(inputs[0]);
  if (e.batch * e.channels * e.spatial == 0) return absl::OkStatus();
  const double eps = number(params, "eps");
  const std::int64_t of_group =
      e.channels / std::get<std::int64_t>(*find_param(params, "num_groups"));
  for (std::int64_t b = 0; b < e.batch; ++b) {
    for (std::int64_t c = 0; c < e.channels; ++c) {
      const std::int64_t first = c / of_group * of_group;
      const MeanVar s = mean_var(inputs[0].data, e, b, b + 1, first, first + of_group);
      normalize(inputs[0].data + e.start(b, c), outputs[0].data + e.start(b, c), e.spatial, s, eps,
                at_or(inputs[1], c, 1), at_or(inputs[2], c, 0));
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln
