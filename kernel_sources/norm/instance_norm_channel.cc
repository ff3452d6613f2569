#include "instance_norm_channel.h"

#include <algorithm>
#include <bit>

namespace kiln {
namespace {

constexpr std::int64_t kMostInstances = 32;  // of a channel: a block's warps
constexpr std::int64_t kMostPacks = 128;     // of an instance: 4 accesses a lane

}  // namespace

Refusal InstanceNormChannelKernel::refusal(const BatchNormCall& c) {
  if (!c.tracks) return refuse("serves calls that move running statistics, got one without");
  if (c.batch > kMostInstances)
    return refuse("serves at most ", kMostInstances,
                  " instances a channel, which a block holds, got ", c.batch);
  const int vec = access_width(c);
  if (c.spatial / vec > kMostPacks)
    return refuse("serves instances that a warp holds, at most ", kMostPacks, " accesses: got ",
                  c.spatial, " elements in accesses of ", vec);
  if (const std::int64_t elements = c.channels * c.per_channel(); !are_small(elements))
    return refuse("serves x of less than 2^31 elements, got ", elements);
  return Kernel::refusal(c);
}

Entry<InstanceNormChannelKernel> InstanceNormChannelKernel::entry_for(const BatchNormCall& c) {
  const int vec = access_width(c);
  const auto power_of_two =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(c.batch)));
  return Entry<InstanceNormChannelKernel>(c.dtype, vec, c.spatial / vec, power_of_two, c.eps,
                                          c.momentum, c.has_weight, c.has_bias);
}

std::vector<Program> InstanceNormChannelKernel::programs(const DeviceFacts& /*facts*/,
                                                         const Config& config) const {
  Program program = sets_program("instance_norm_channel", facts_, config);
  program.constants.push_back({"PACKS", packs_});
  program.constants.push_back({"ITEMS", (packs_ + 31) / 32});
  program.constants.push_back({"INSTANCES", instances_});
  program.constants.push_back({"SETS", config["sets"]});
  return {program};
}

Config InstanceNormChannelKernel::default_config(const DeviceFacts& /*facts*/) const {
  return {{"threads", 32}, {"sets", std::max<std::int64_t>(8, instances_)}, {"store_hint", 0}};
}

std::vector<Config> InstanceNormChannelKernel::autotune_configs(const DeviceFacts& facts) const {
  std::vector<Config> configs = {default_config(facts)};
  for (std::int64_t sets = instances_; sets <= 32; sets *= 2) {
    Config one = configs[0];
    one.set("sets", sets);
    if (one != configs[0]) configs.push_back(one);
  }
  return configs;
}

absl::Status InstanceNormChannelKernel::forward(const Stream& stream, const Tensor& x,
                                                const Tensor& running_mean,
                                                const Tensor& running_var, const Tensor& weight,
                                                const Tensor& bias, const Tensor& y,
                                                void* /*workspace*/) const {
  const Loaded& here = loaded(stream);
  const std::int64_t batch = x.shape[0], channels = x.shape[1], spatial = x.shape[2];
  SetsCall call = sets_call({batch * channels, 1, spatial, spatial, spatial, channels}, facts_.vec,
                            eps_, momentum_);
  call.x = x.data;
  call.y = y.data;
  call.weight = weight.data;
  call.bias = bias.data;
  call.running_mean = running_mean.data;
  call.running_var = running_var.data;
  const std::int64_t sets = here.config["sets"];
  const std::int64_t blocks = (channels * instances_ + sets - 1) / sets;
  const LaunchShape shape{.grid = {static_cast<std::uint32_t>(blocks), 1, 1},
                          .block = {32, static_cast<std::uint32_t>(sets), 1}};
  return launch(here, 0, stream, shape, call, static_cast<int>(batch),
                1.0 / static_cast<double>(batch));
}

}  // namespace kiln
