#include "infer_map.h"

#include <absl/strings/str_format.h>

namespace kiln {
namespace {

// The host's copy of InferCall in fwd_infer_kernel.cu: both change together.
struct InferCall {
  const void *x, *y, *mean, *variance, *weight, *bias;
  std::int64_t packs, piece, channels;
  float eps;
};

}  // namespace

std::vector<Program> InferMap::programs(const DeviceFacts&, const Config& config) const {
  return {
      Program{.source = "kernel_sources/norm/fwd_infer_kernel.cu",
              .headers = {"kernel_sources/device/dtype.cuh", "kernel_sources/device/memory.cuh"},
              .kernels = {"fwd_infer_kernel"},
              .constants = {{"DTYPE", dtype_},
                            {"FACTOR", factor_},
                            {"VEC", std::int64_t{vec_}},
                            {"ROUND_STATISTICS", rounded_},
                            {"THREADS", config["threads"]},
                            {"UNROLL", config["unroll"]},
                            {"STORE_HINT", config["store_hint"]}}}};
}

Config InferMap::default_config(const DeviceFacts&) const {
  return {{"threads", 256}, {"unroll", 1}, {"store_hint", 1}};
}

std::vector<Config> InferMap::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t threads : {128, 256, 512}) {
    for (std::int64_t unroll : {1, 2, 4})
      configs.push_back({{"threads", threads}, {"unroll", unroll}, {"store_hint", 1}});
  }
  return configs;
}

absl::Status InferMap::run(const Stream& stream, const Tensor& x, const Tensor& mean,
                           const Tensor& var, const Tensor& weight, const Tensor& bias,
                           const Tensor& y) const {
  const Loaded& loaded = this->loaded(stream);
  const InferCall call{x.data,
                       y.data,
                       mean.data,
                       var.data,
                       weight.data,
                       bias.data,
                       x.elements() / vec_,
                       x.shape[2] / vec_,
                       x.shape[1],
                       static_cast<float>(eps_)};
  const std::int64_t threads = loaded.config["threads"];
  const std::int64_t block = threads * loaded.config["unroll"];
  const std::int64_t blocks = (call.packs + block - 1) / block;
  if (blocks >= std::int64_t{1} << 31) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d elements in accesses of %d are more than a grid of 2^31 blocks serves",
                        x.elements(), vec_));
  }
  return launch(loaded, 0, stream,
                LaunchShape{.grid = {static_cast<std::uint32_t>(blocks), 1, 1},
                            .block = {static_cast<std::uint32_t>(threads), 1, 1}},
                call);
}

}  // namespace kiln
