#include "fwd_train_whole.h"

namespace kiln {

std::vector<Program> WholeSets::programs(const Config& config) const {
  std::int64_t held = 1;  // a power of two, so that few binaries serve all batches
  while (held < values_) held *= 2;
  SetsFacts facts = facts_;
  facts.contiguous = false;
  Program program = sets_program("fwd_train_whole", facts, config);
  program.constants.push_back({"HELD", held});
  return {program};
}

Config WholeSets::default_config(const DeviceFacts&) const {
  return {{"threads", 64}, {"store_hint", 1}};
}

std::vector<Config> WholeSets::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t threads : {32, 64, 128, 256})
    configs.push_back({{"threads", threads}, {"store_hint", 1}});
  return configs;
}

LaunchShape WholeSets::shape(const Config& config, std::int64_t sets) const {
  const std::int64_t threads = config["threads"];
  return {.grid = {static_cast<std::uint32_t>((sets + threads - 1) / threads), 1, 1},
          .block = {static_cast<std::uint32_t>(threads), 1, 1}};
}

}  // namespace kiln
