#ifndef KILN_KERNEL_SOURCES_NORM_ROW_PLACEMENTS_H_
#define KILN_KERNEL_SOURCES_NORM_ROW_PLACEMENTS_H_

#include "row_norm_kernel.h"

// The placements: which threads hold a row. Each serves the rows that its README line states; what
// a form changes in a default is here, too, so that one file shows a placement whole.
namespace kiln {

using RowChoices = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

// Lanes of one warp for a row.
class WarpRows : public RowNormKernel {
 public:
  static Refusal refusal(const LayerNormCall& call);
  Config default_config(const DeviceFacts& facts) const override;

 protected:
  WarpRows(const RowForm& form, const RowFacts& facts)
      : RowNormKernel(form, facts, {"_warp", "row_warp"}) {}
  std::int64_t blocks(const Config& config, int sm_count, std::int64_t rows) const override;
  RowChoices choices(const DeviceFacts& facts) const override;
  std::int64_t held_packs(const Config& config) const override;
};

// A block for a row, which it holds in registers.
class BlockRows : public RowNormKernel {
 public:
  static Refusal refusal(const LayerNormCall& call);
  Config default_config(const DeviceFacts& facts) const override;

 protected:
  BlockRows(const RowForm& form, const RowFacts& facts)
      : RowNormKernel(form, facts, {"", "row_block"}) {}
  std::int64_t blocks(const Config& config, int sm_count, std::int64_t rows) const override;
  std::int64_t smem_bytes(const Config& config) const override { return factor_bytes(config); }
  RowChoices choices(const DeviceFacts& facts) const override;
  std::int64_t held_packs(const Config& config) const override;
};

// A block for a row of any length, which it reads twice. Serves all that the family serves.
class StreamRows : public RowNormKernel {
 public:
  static constexpr bool general = true;
  Config default_config(const DeviceFacts& facts) const override;

 protected:
  StreamRows(const RowForm& form, const RowFacts& facts)
      : RowNormKernel(form, facts, {"_stream", "row_stream"}) {}
  std::int64_t blocks(const Config& config, int sm_count, std::int64_t rows) const override;
  RowChoices choices(const DeviceFacts& facts) const override;
};

// A cluster of blocks for each of few rows that a block could hold: several multiprocessors move a
// row sooner than one. Its results are those of the block's default, bit for bit.
class ClusterRows : public RowNormKernel {
 public:
  static constexpr auto supported_archs = archs(90, 100, 120);
  // From so many bytes on a cluster is faster for few rows; of plain RMSNorm, which reads once and
  // has little to add up, a block is level with it for longer (H200).
  static constexpr std::int64_t least_bytes(const RowForm& form) {
    return form.centred || form.fused ? kLeastBytes : 30720;
  }
  static Refusal refusal(const LayerNormCall& call) { return refusal_below(call, kLeastBytes); }
  Config default_config(const DeviceFacts& facts) const override;

 protected:
  static constexpr std::int64_t kLeastBytes = 16384;
  static Refusal refusal_below(const LayerNormCall& call, std::int64_t least_bytes);
  ClusterRows(const RowForm& form, const RowFacts& facts)
      : RowNormKernel(form, facts, {"_cluster", "row_cluster"}) {}
  std::int64_t blocks(const Config& config, int sm_count, std::int64_t rows) const override;
  std::int64_t threads(const Config& config) const override;
  std::int64_t smem_bytes(const Config& config) const override { return factor_bytes(config); }
  RowChoices choices(const DeviceFacts& facts) const override;
  std::int64_t held_packs(const Config& config) const override;
};

// A cluster of blocks for a long row, which they hold in registers while the next comes into shared
// memory; clusters take rows from a queue.
class QueueRows : public RowNormKernel {
 public:
  static constexpr auto supported_archs =
      archs(90, 100);  // those with the shared memory: 128 KB and more a block
  static bool serves_rows_of(std::int64_t bytes);
  static Refusal refusal(const LayerNormCall& call);
  std::vector<Program> programs(const DeviceFacts& facts, const Config& config) const override;
  Config default_config(const DeviceFacts& facts) const override;

 protected:
  QueueRows(const RowForm& form, const RowFacts& facts)
      : RowNormKernel(form, facts, {"_queue", "row_queue", {"kernel_sources/device/bulk.cuh"}}) {}
  std::int64_t blocks(const Config& config, int sm_count, std::int64_t rows) const override;
  std::int64_t smem_bytes(const Config& config) const override;
  RowChoices choices(const DeviceFacts& facts) const override;
  std::int64_t held_packs(const Config& config) const override;
  bool can_run(const Config& config, const DeviceFacts& facts) const override;

  // `workspace` becomes the queue where a cluster takes more than one row.
  template <class... A>
  absl::Status launch_rows(const Stream& stream, void* workspace, std::int64_t rows,
                           const A&... args) const {
    const Loaded& here = loaded(stream);
    void* queue = nullptr;
    if (blocks(here.config, here.facts.sm_count, rows) < rows * here.config["cluster"]) {
      queue = workspace;
      absl::Status begun = launch(here, 1, stream, LaunchShape{}, queue);
      if (!begun.ok()) return begun;
    }
    return RowNormKernel::launch_rows(stream, rows, args..., queue);
  }
};

// A cluster of blocks for a row, which they read twice.
class ClusterStreamRows : public RowNormKernel {
 public:
  static constexpr auto supported_archs = archs(90, 100, 120);
  static Refusal refusal(const LayerNormCall& call);
  Config default_config(const DeviceFacts& facts) const override;

 protected:
  ClusterStreamRows(const RowForm& form, const RowFacts& facts)
      : RowNormKernel(
            form, facts,
            {"_cluster_stream", "row_cluster_stream", {"kernel_sources/norm/row_stream.cuh"}}) {}
  std::int64_t blocks(const Config& config, int sm_count, std::int64_t rows) const override;
  RowChoices choices(const DeviceFacts& facts) const override;
  bool can_run(const Config& config, const DeviceFacts& facts) const override;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_ROW_PLACEMENTS_H_
