#ifndef KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_WHOLE_H_
#define KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_WHOLE_H_

#include "batch_norm_kernel.h"

namespace kiln {

// Few values a channel that lie C apart (no spatial extent): a few threads hold a channel.
class WholeSets {
 public:
  static constexpr std::int64_t kMostValues = 32;
  WholeSets(const SetsFacts& facts, std::int64_t values) : facts_(facts), values_(values) {}
  std::vector<Program> programs(const Config& config) const;
  Config default_config(const DeviceFacts& facts) const;
  std::vector<Config> autotune_configs(const DeviceFacts& facts) const;
  LaunchShape shape(const Config& config, std::int64_t sets) const;

 private:
  SetsFacts facts_;
  std::int64_t values_;  // of a channel
};

class FwdTrainWholeKernel final : public BatchNormTrainKernel<WholeSets> {
 public:
  static constexpr auto preferred_over = keys("fwd_train_wide");
  static Refusal refusal(const BatchNormCall& c) {
    if (c.spatial != 1) return refuse("serves channels without a spatial extent, got ", c.spatial);
    if (c.batch > WholeSets::kMostValues)
      return refuse("serves at most ", WholeSets::kMostValues, " values a channel, got ", c.batch);
    return Kernel::refusal(c);
  }
  static Entry<FwdTrainWholeKernel> entry_for(const BatchNormCall& c) {
    return batch_norm_entry<FwdTrainWholeKernel>(c);
  }
  using BatchNormTrainKernel::BatchNormTrainKernel;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NORM_FWD_TRAIN_WHOLE_H_
