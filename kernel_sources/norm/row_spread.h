#ifndef KILN_KERNEL_SOURCES_NORM_ROW_SPREAD_H_
#define KILN_KERNEL_SOURCES_NORM_ROW_SPREAD_H_

#include <kiln/tensor.h>

#include "row_placements.h"

#include <cstddef>
#include <optional>

namespace kiln {

// All multiprocessors for each of the longest rows, which pass through rings in shared memory
// (configurations with "slots"); where a device's blocks have no room for that, as a cluster
// stream.
class SpreadRows : public ClusterStreamRows {
 public:
  static constexpr auto supported_archs = archs(90, 100);  // as of QueueRows
  // Bytes of workspace: the moments of the rows under way, on any device.
  static constexpr std::int64_t kMostSlots = 32, kMostSlices = 256;
  static constexpr std::size_t kWorkspaceBytes = 2 * kMostSlots * kMostSlices * 16;

  static bool serves_rows_of(std::int64_t bytes);
  static Refusal refusal(const LayerNormCall& call);
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  Config default_config(const DeviceFacts& facts) const override;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const override;

 protected:
  SpreadRows(const RowForm& form, const RowFacts& facts) : ClusterStreamRows(form, facts) {}
  std::int64_t smem_bytes(const Config& config) const override;

  template <class... A>
  absl::Status launch_rows(const Stream& stream, void* workspace, std::int64_t rows,
                           const A&... args) const {
    const Loaded& here = loaded(stream);
    if (here.config["slots"] == 0) return ClusterStreamRows::launch_rows(stream, rows, args...);
    if (rows == 0) return absl::OkStatus();
    const absl::StatusOr<LaunchShape> shape = spread_shape(here.config, here.facts.sm_count);
    if (!shape.ok()) return shape.status();
    const std::int64_t moments = 2 * here.config["slots"] * slices(here.config);
    const LaunchShape clearing{.grid = {static_cast<std::uint32_t>(ceil_div(moments, 256)), 1, 1},
                               .block = {256, 1, 1}};
    absl::Status begun = launch(here, 1, stream, clearing, workspace, moments);
    if (!begun.ok()) return begun;
    return launch(here, 0, stream, *shape, args..., workspace);
  }

 private:
  // Slices of `part` packs, if there is room for them.
  std::optional<Config> config_of(const DeviceFacts& facts, std::int64_t part, std::int64_t threads,
                                  std::int64_t unroll, std::int64_t gatherers) const;
  // The smallest slice, in packs, that gives no multiprocessor two.
  std::int64_t least_part(const DeviceFacts& facts) const;
  std::int64_t slices(const Config& config) const {
    return ceil_div(row().packs(), config["part"]);
  }
  // An error where the blocks could wait for each other for good: on a device with fewer
  // multiprocessors than the configuration is for.
  absl::StatusOr<LaunchShape> spread_shape(const Config& config, int sm_count) const;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ROW_SPREAD_H_
