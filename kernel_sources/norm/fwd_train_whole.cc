#include "fwd_train_whole.h"

namespace kiln {

std::vector<Program> WholeSets::programs(const Config& config) const {
  std::int64_t held = 1;  // a power of two, so that few binaries serve all batches
  while (held * config["rows"] < values_) held *= 2;
  SetsFacts facts = facts_;
  facts.contiguous = false;
  Program program = sets_program("fwd_train_whole", facts, config);
  program.constants.push_back({"HELD", held});
  program.constants.push_back({"ROWS", config["rows"]});
  return {program};
}

Config WholeSets::default_config(const DeviceFacts&) const {
  return {{"threads", 128}, {"rows", 8}, {"store_hint", 0}};
}

std::vector<Config> WholeSets::autotune_configs(const DeviceFacts&) const {
  std::vector<Config> configs;
  for (std::int64_t threads : {64, 128, 256}) {
    for (std::int64_t rows : {4, 8, 16})
      configs.push_back({{"threads", threads}, {"rows", rows}, {"store_hint", 0}});
  }
  return configs;
}

LaunchShape WholeSets::shape(const Config& config, std::int64_t sets) const {
  const std::int64_t threads = config["threads"], channels = threads / config["rows"];
  return {.grid = {static_cast<std::uint32_t>((sets + channels - 1) / channels), 1, 1},
          .block = {static_cast<std::uint32_t>(threads), 1, 1}};
}

}  // namespace kiln
